// SPDX-License-Identifier: BSD-3-Clause
// A sweep as a matrix: from every layout to every other, how far one planner is from the bound.
//
// Colour is the part of the time that is above the bound, from none at the bound: so 1 to 2 takes
// half of the colours, and one pair that takes very long does not make all others look alike.
#pragma once

#include <string_view>

#include "sim/picture/markup.h"
#include "sim/report/report.h"

namespace reshard::sim {

// Of the rows of this mesh and planner, which the report has.
void draw_matrix(Node parent, const SweepReport& report, std::string_view mesh,
                 std::string_view planner);

}  // namespace reshard::sim
