// SPDX-License-Identifier: BSD-3-Clause
// Plans with collectives over boxes, which no planner makes: every collective of a plan is split
// into two halves.
#pragma once

#include "core/plan/plan.h"

namespace reshard::test {

// The halves are cut along the innermost dim, other than that of the blocks, in which all groups
// have two elements or more; steps without such a dim stay whole.
Plan with_halved_collectives(const Plan& plan);

}  // namespace reshard::test
