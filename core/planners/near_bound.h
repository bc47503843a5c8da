// SPDX-License-Identifier: BSD-3-Clause
// Large jobs for which p2p takes barely longer than the least time: trees, which take seconds to
// find, could gain no more than the difference.
#pragma once

#include <cstdint>
#include <optional>

#include "core/planners/planner.h"

namespace reshard {

// The plan of p2p, under the name of `packed`, if the job is too large to be planned tensor by
// tensor (too_large_for_each_tensor) and the plan takes at most 1/500 longer than `bound_ps`, or
// 1/100 on many ranks. None if there are memory limits or plans cannot be timed.
std::optional<Plan> p2p_near_bound(const Demand& demand, const PlannerInput& input,
                                   std::int64_t bound_ps);

}  // namespace reshard
