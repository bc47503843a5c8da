// SPDX-License-Identifier: BSD-3-Clause
// Large jobs that p2p moves in hardly more than the least time: trees, which take seconds to find,
// could gain no more than that.
#pragma once

#include <cstdint>
#include <optional>

#include "core/planners/planner.h"

namespace reshard {

// The plan of p2p, under the name of `packed`, if the job is too large to be planned tensor by
// tensor (too_large_for_each_tensor) and the plan takes at most a five-hundredth longer than
// `bound_ps`; a hundredth on many ranks. None within memory limits and without a way to time plans.
std::optional<Plan> p2p_near_bound(const Demand& demand, const PlannerInput& input,
                                   std::int64_t bound_ps);

}  // namespace reshard
