// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch does when asked for a redistribution: the steps of one of its two planners and what
// they cost by its model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/layout/layout.h"
#include "core/layout/request.h"
#include "core/torch/cost_model.h"

namespace reshard {

// How PyTorch's min-cost planner reads _StridedShard: as a Shard with a place in its dim's order.
//
// An axis that cuts a dim after axes of larger number holds what a strided cut would give it, with
// the product of those axes' sizes as split factor. Read backward, a split factor names the place:
// axes are walked from last to first, and each is put where the product of the sizes before it is
// its factor, 1 for Shard.
//
// The two say the same where every cut is even. Where one is not they may differ (f32[7] as
// [_S(0, 2), S(0)] on 3x2): PyTorch makes the shards by one and plans by the other.

// A request as the min-cost planner sees it: without _StridedShard.
struct OrderedRequest {
  Layout source, target;
  // Whether every rank holds what the request's own layouts give it.
  bool exact = true;
};

// None across meshes, and where a side's _StridedShards are no shard order, or have one of their
// own beside it, which PyTorch cannot say.
std::optional<OrderedRequest> as_shard_orders(const Request& request);

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

// The steps of PyTorch's greedy planner, with shard orders and _StridedShard as greedy.cpp says.
std::vector<TorchStep> torch_greedy_steps(const Request& request);

// Whether PyTorch plans the request by its greedy planner unless told otherwise: a shard order
// other than the default or a _StridedShard, on either side, goes to its min-cost planner first.
bool torch_plans_greedily(const Request& request);

// Cost of the whole request by the min-cost planner's steps. Infinite across meshes, where the
// search would take too long, and for every _StridedShard, one that stands for a shard order among
// them, as PyTorch's is: what it plans then it prices only where the order is said as one. Nothing
// costs nothing even so, and what is whole on every rank.
double torch_min_cost_us(const Request& request, std::int32_t devices_per_host);

// The same by the steps of the planner that PyTorch takes unless told otherwise.
double torch_redistribute_cost_us(const Request& request, std::int32_t devices_per_host);

}  // namespace reshard
