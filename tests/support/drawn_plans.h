// SPDX-License-Identifier: BSD-3-Clause
// Correct plans to start from, and single faults to put into them.
#pragma once

#include <optional>
#include <string>

#include "tests/support/prng.h"
#include "tests/support/slow_proof.h"

namespace reshard::test {

// A correct plan that no planner would make, of 2-d and 3-d tensors: random steps of every kind
// over temporaries of many shapes, then the destination assembled from whatever holds its values by
// then. None if the random choices lead nowhere. `meaning` is the request's.
std::optional<Plan> wander(Prng& prng, const Request& request, const SlowMeaning& meaning);

// Changes one field of one step, one step's position, or one buffer's shape on one rank, and says
// which. The plan may still be correct.
std::string break_plan(Prng& prng, Plan& plan);

}  // namespace reshard::test
