// SPDX-License-Identifier: BSD-3-Clause
// A plan's bytes moved and compared: every source element filled by Pattern, every destination
// element checked against what the request defines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/plan/plan.h"
#include "sim/store/shrink.h"
#include "sim/study/data_report.h"

namespace reshard::sim {

// Source, destination and temporaries of all ranks; temporaries at each rank's peak, sharing of
// replicas not deducted.
std::int64_t store_bytes(const Plan& plan);

// Plans and proves a request, by the planner that made the plan at full size: what is checked small
// must be the strategy that is used large.
using MakePlan = std::function<std::shared_ptr<const Plan>(const Request& request)>;

// Moves the bytes of `plan`, or, where store_bytes is above the budget, of a plan for a shrunk
// tensor, as small as it takes or as it gets. Throws CheckFailure naming rank, global index,
// expected and found bits where an element is wrong; InputError, before any shard is allocated,
// where what is to be moved needs more than `memory_limit_bytes`.
DataReport move_and_check(const Request& request, std::shared_ptr<const Plan> plan,
                          const MakePlan& replan, std::int64_t budget_bytes,
                          std::int64_t memory_limit_bytes);

}  // namespace reshard::sim
