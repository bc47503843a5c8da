// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's min-cost redistribution planner: Dijkstra's search over what placements and shard
// orders can become, one axis at a time.
//
// A state is one placement per axis and the order in which the axes of a dim cut it. From a state
// lead, in this order, dims and axes ascending:
//
//   the innermost axis of each dim to every other dim    all-to-all
//   the innermost axis of each dim to R                  all-gather
//   P to R                                               all-reduce
//   R to S of every dim                                  nothing moves
//   P to S of every dim                                  reduce-scatter
//   R to P, of the operators of source and target, where no mix but that of sum with avg results
//   the innermost axis of each dim to P(sum), where the target has it, at no cost
//
// What a step costs is the model's answer for the state before it (cost_model.h). Of equal costs
// the state that was found first comes first, so the plan is one for all of PyTorch's ties too.
// (PyTorch itself keeps operators in a set, whose order changes from run to run; here they come in
// the order in which source and target name them.)
#pragma once

#include <cstdint>
#include <vector>

#include "core/torch/cost_model.h"
#include "core/torch/shard_order.h"

namespace reshard {

// PyTorch makes any addends of a wanted sum that come cheap. A request says which: R -> P(sum) is a
// division, S(d) -> P(sum) keeps the shards, P -> P leaves every addend where it is.
enum class WantedAddends : std::uint8_t { Any, AsRequested };

// Ways in which a tensor can lie on a mesh that the search may have to look at: 0.1 s.
inline constexpr std::int64_t kMaxTorchStates = std::int64_t{1} << 17;
bool can_search(const OrderedRequest& request);

// Where can_search says so.
std::vector<TorchStep> torch_min_cost_steps(const OrderedRequest& request,
                                            std::int32_t devices_per_host,
                                            WantedAddends addends = WantedAddends::Any);

// Whether the steps make the addends that the request asks for.
bool make_wanted_addends(const OrderedRequest& request, const std::vector<TorchStep>& steps);

}  // namespace reshard
