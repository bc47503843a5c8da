// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's answer to a redistribution: the steps of either of its two planners and their cost in
// its model.
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
// An axis that cuts a dim after higher-numbered axes holds what a strided cut with a split factor
// equal to the product of those axes' sizes would give it. The planner reads this backward: a split
// factor names a place. It walks the axes from last to first and puts each where the product of the
// sizes before it equals its factor (1 for Shard).
//
// The two readings agree where every cut is even. Where one is uneven they can differ (f32[7] as
// [_S(0, 2), S(0)] on 3x2): PyTorch makes the shards by one and plans by the other.

// A request as the min-cost planner sees it, without _StridedShard.
struct OrderedRequest {
  Layout source, target;
  // Whether every rank holds what the request's own layouts give it.
  bool exact = true;
};

// nullopt across meshes, where a side's _StridedShards do not encode a shard order, and where a
// side has both a _StridedShard and a non-default order, which PyTorch cannot express.
std::optional<OrderedRequest> as_shard_orders(const Request& request);

// PyTorch's min-cost redistribution planner: Dijkstra's search over placements and shard orders,
// changing one axis at a time.
//
// A state is one placement per axis and the order in which the axes of each dim cut it. The steps
// from a state are, in this order, with dims and axes ascending:
//
//   the innermost axis of each dim to every other dim    all-to-all
//   the innermost axis of each dim to R                  all-gather
//   P to R                                               all-reduce
//   R to S of every dim                                  nothing moves
//   P to S of every dim                                  reduce-scatter
//   R to P                                               nothing moves
//   the innermost axis of each dim to P(sum)             free
//
// R to P uses the operators of source and target and never mixes operators, except sum with avg.
// The last kind exists only for axes that are P(sum) in the target.
//
// The model gives the cost of a step from the state before it (cost_model.h). Among equal costs the
// state found first comes first, so PyTorch's ties are resolved in one fixed way. (PyTorch itself
// keeps operators in a set, and its order changes from run to run; here they are in the order in
// which source and target name them.)

// Which addends of a wanted sum to make. PyTorch makes whichever are cheapest. A request defines
// them: R -> P(sum) divides, S(d) -> P(sum) keeps the shards, P -> P keeps every addend in place.
enum class WantedAddends : std::uint8_t { Any, AsRequested };

// The most states that the search may have to visit; that many take about 0.1 s.
inline constexpr std::int64_t kMaxTorchStates = std::int64_t{1} << 17;
bool can_search(const OrderedRequest& request);

// Requires can_search.
std::vector<TorchStep> torch_min_cost_steps(const OrderedRequest& request,
                                            std::int32_t devices_per_host,
                                            WantedAddends addends = WantedAddends::Any);

// Whether the steps make the addends that the request defines.
bool make_wanted_addends(const OrderedRequest& request, const std::vector<TorchStep>& steps);

// The steps of PyTorch's greedy planner. greedy.cpp explains how shard orders and _StridedShard are
// treated.
std::vector<TorchStep> torch_greedy_steps(const Request& request);

// Whether PyTorch uses its greedy planner for the request by default. A non-default shard order or
// a _StridedShard, on either side, goes to its min-cost planner first.
bool torch_plans_greedily(const Request& request);

// Cost of the whole request by the min-cost planner's steps. Infinite across meshes, where
// can_search refuses, and, as in PyTorch, for every _StridedShard, even one that encodes a shard
// order: PyTorch plans such a request but prices it only if the order is given as an order. 0, even
// then, where nothing changes or the source is fully replicated.
double torch_min_cost_us(const Request& request, std::int32_t devices_per_host);

// The same by the steps of the planner that PyTorch uses by default.
double torch_redistribute_cost_us(const Request& request, std::int32_t devices_per_host);

}  // namespace reshard
