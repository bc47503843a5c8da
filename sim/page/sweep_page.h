// SPDX-License-Identifier: BSD-3-Clause
// The page of a sweep: how near to the bound each planner is on each mesh.
#pragma once

#include <string>

#include "sim/report/report.h"

namespace reshard::sim {

std::string sweep_page(const SweepReport& report);

}  // namespace reshard::sim
