// SPDX-License-Identifier: BSD-3-Clause
// The page of one plan and its run: `plan` and `simulate`.
#pragma once

#include <string>
#include <string_view>

#include "sim/report/report.h"
#include "sim/study/study.h"

namespace reshard::sim {

// `kind`: "plan", "simulation". `report` of the study, with its critical path.
std::string run_page(std::string_view kind, const RunReport& report, const Study& study);

}  // namespace reshard::sim
