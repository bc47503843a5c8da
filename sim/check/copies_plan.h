// SPDX-License-Identifier: BSD-3-Clause
// Copies that were judged and are right, as a plan, which can be proved and timed as any other.
#pragma once

#include "core/plan/plan.h"
#include "sim/check/check_file.h"

namespace reshard::sim {

// All copies at once: local ones, and one message from a rank to another. Its requests are those of
// StoredRequests, its planner is "given". The copies must be proved. Throws InputError if some go
// over relays, and if they are too many for a plan.
Plan plan_of(const CheckedCopies& copies);

}  // namespace reshard::sim
