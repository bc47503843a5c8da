// SPDX-License-Identifier: BSD-3-Clause
// The most that a rank's temporaries hold at one time, however its steps overlap.
//
// A temporary is gone before another begins if every step that uses the one is ordered before every
// step that writes the other, on this rank. So let each take over the memory of those that are gone
// before it, the first of them first, and new memory where that is not enough: what is taken in all
// is never less than what is held at one time, and of steps in sequence it is just that.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// In bytes, by slot. Throws InputError where steps are too many to order (step_order.h).
std::vector<std::int64_t> held_temporaries(const Plan& plan);

}  // namespace reshard
