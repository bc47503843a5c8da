// SPDX-License-Identifier: BSD-3-Clause
// The pages, each of one report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/page/page.h"
#include "sim/replay/replay.h"
#include "sim/report/comparison.h"
#include "sim/report/report.h"
#include "sim/study/study.h"

namespace reshard::sim {

// The page of one plan and its run: `plan` and `simulate`.

// `kind`: "plan", "simulation". `report` of the study, with its critical path.
std::string run_page(std::string_view kind, const RunReport& report, const Study& study);

// Its parts, for pages that say more of a run.
std::string run_title(const RunReport& report);
std::vector<Fact> run_facts(const RunReport& report);
void add_run_panels(Page& page, const RunReport& report, const Study& study,
                    std::string_view timeline_heading);

// The page of a plan that was run: what was measured beside what was predicted. `median` is the run
// that the report calls so.
std::string validate_page(const ValidateReport& report, const Study& study, const Timeline& median);

// The page of a replayed trace: operations where that of a plan has steps. `report` without
// findings, with details, its critical path and what links did.
std::string replay_page(const ReplayReport& report, const Topology& topology);

// The page of a sweep: how near to the bound each planner is on each mesh.
std::string sweep_page(const SweepReport& report);

// Two reports side by side, as a page: their figures as pairs of bars, and what differs in each of
// their lists.
std::string compare_page(const Comparison& comparison);

}  // namespace reshard::sim
