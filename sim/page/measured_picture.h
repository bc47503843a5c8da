// SPDX-License-Identifier: BSD-3-Clause
// What each step of a plan took on a backend beside what was predicted. Where the prediction is for
// another machine their lengths say nothing of each other: then what share of its whole each step
// is.
#pragma once

#include "sim/picture/markup.h"
#include "sim/report/report.h"

namespace reshard::sim {

// Into a panel.
void draw_measured(Node panel, const ValidateReport& report);

}  // namespace reshard::sim
