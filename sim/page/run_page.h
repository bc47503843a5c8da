// SPDX-License-Identifier: BSD-3-Clause
// The page of one plan and its run: `plan` and `simulate`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/page/headline.h"
#include "sim/page/page.h"
#include "sim/report/report.h"
#include "sim/study/study.h"

namespace reshard::sim {

// `kind`: "plan", "simulation". `report` of the study, with its critical path.
std::string run_page(std::string_view kind, const RunReport& report, const Study& study);

// Its parts, for pages that say more of a run.
std::string run_title(const RunReport& report);
std::vector<Fact> run_facts(const RunReport& report);
void add_run_panels(Page& page, const RunReport& report, const Study& study,
                    std::string_view timeline_heading);

}  // namespace reshard::sim
