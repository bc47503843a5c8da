// SPDX-License-Identifier: BSD-3-Clause
// The page of a plan that was run: what was measured beside what was predicted.
#pragma once

#include <string>

#include "sim/report/report.h"
#include "sim/study/study.h"

namespace reshard::sim {

// `median` is the run that the report calls so.
std::string validate_page(const ValidateReport& report, const Study& study, const Timeline& median);

}  // namespace reshard::sim
