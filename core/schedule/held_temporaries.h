// SPDX-License-Identifier: BSD-3-Clause
// The most that a rank's temporaries hold at one time, however its steps overlap.
//
// A temporary is gone before another begins if every step that uses the one is ordered before every
// step that writes the other, on this rank. Those of which none is gone before another may all be
// held at one time; the most bytes of such ones are, by Dilworth's theorem with weights, what all
// take together less what they can take over from each other, each from those gone before it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// In bytes, by slot. Throws InputError where steps are too many to order (step_order.h).
std::vector<std::int64_t> held_temporaries(const Plan& plan);

}  // namespace reshard
