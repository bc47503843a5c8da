// SPDX-License-Identifier: BSD-3-Clause
// The most that a rank's temporaries hold at any one time, however its steps overlap.
//
// On a rank, one temporary is gone before another if every step that uses it is ordered before
// every step that writes the other. Temporaries can all be held at once if none of them is gone
// before another. By Dilworth's theorem with weights, the most bytes that such a set holds is the
// total of all temporaries minus the most that they can take over, each from those gone before it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// In bytes, by slot. Throws InputError where there are too many steps to order (step_order.h).
std::vector<std::int64_t> held_temporaries(const Plan& plan);

}  // namespace reshard
