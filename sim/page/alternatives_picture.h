// SPDX-License-Identifier: BSD-3-Clause
// What `auto` weighed: the time of every planner's plan beside the bound, and why it is not the one
// that was taken.
#pragma once

#include <cstdint>
#include <vector>

#include "core/planners/planner.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

// Into a panel; nothing where nothing was weighed.
void draw_alternatives(Node panel, const std::vector<Explanation::Alternative>& alternatives,
                       std::int64_t bound_ps);

}  // namespace reshard::sim
