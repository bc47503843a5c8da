// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch does when asked for a redistribution: the steps of one of its two planners, which of
// them become one collective, and what the steps cost by its model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/torch/cost_model.h"
#include "core/torch/shard_order.h"

namespace reshard {

// The steps of PyTorch's greedy planner, with shard orders and _StridedShard as greedy.cpp says.
std::vector<TorchStep> torch_greedy_steps(const Request& request);

// Whether PyTorch plans the request by its greedy planner unless told otherwise: a shard order
// other than the default or a _StridedShard, on either side, goes to its min-cost planner first.
bool torch_plans_greedily(const Request& request);

// Cost of the whole request by the min-cost planner's steps, also where PyTorch's own figure is
// infinite because a _StridedShard stands for a shard order. Infinite across meshes, where a
// _StridedShard stands for none, and where the search would take too long.
double torch_min_cost_us(const Request& request, std::int32_t devices_per_host);

// The same by the steps of the planner that PyTorch takes unless told otherwise.
double torch_redistribute_cost_us(const Request& request, std::int32_t devices_per_host);

}  // namespace reshard
