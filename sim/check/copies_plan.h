// SPDX-License-Identifier: BSD-3-Clause
// Turns copies that were judged and have no faults into a plan, which can be proved and timed as
// any other.
#pragma once

#include "core/plan/plan.h"
#include "sim/check/check_file.h"

namespace reshard::sim {

// All copies happen at once: local ones as copies, others as one message per pair of ranks. The
// requests are those of StoredRequests, the planner is "given". The copies must be proved. Throws
// InputError if some pass through relays, or if there are too many for a plan.
Plan plan_of(const CheckedCopies& copies);

}  // namespace reshard::sim
