// SPDX-License-Identifier: BSD-3-Clause
// Right plans to start from, and single faults to put into them.
#pragma once

#include <optional>
#include <string>

#include "tests/support/prng.h"
#include "tests/support/slow_proof.h"

namespace reshard::test {

// A right plan that no planner would make, of 2-d and 3-d tensors: steps of every kind drawn one by
// one over temporaries of many shapes, then the destination put together out of whatever holds its
// values by then. None where the draw leads nowhere. `meaning` is the request's.
std::optional<Plan> wander(Prng& prng, const Request& request, const SlowMeaning& meaning);

// Changes one field of one step, one step's place, or one buffer's shape on one rank; says which.
// The plan may be as right as before.
std::string break_plan(Prng& prng, Plan& plan);

}  // namespace reshard::test
