// SPDX-License-Identifier: BSD-3-Clause
// The pages, one per kind of report.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/page/page.h"
#include "sim/replay/replay.h"
#include "sim/report/comparison.h"
#include "sim/report/run_report.h"
#include "sim/report/sweep_report.h"
#include "sim/report/validate_report.h"
#include "sim/study/study.h"

namespace reshard::sim {

// What a page shows before the run: a title in place of the request, more facts, panels.
struct PageOpening {
  std::string title = {};
  std::vector<Fact> facts = {};
  std::function<void(Page&)> panels = {};
};

// The page of one plan and its run, for `plan` and `simulate`. `kind`: "plan", "simulation".
// `report` must be that of the study, with its critical path.
std::string run_page(std::string_view kind, const RunReport& report, Study& study,
                     const PageOpening& opening = {});

// The parts of run_page, for pages that show more about a run.
std::string run_title(const RunReport& report);
std::vector<Fact> run_facts(const RunReport& report);
void add_run_panels(Page& page, const RunReport& report, Study& study,
                    std::string_view timeline_heading);

// The page of a plan that ran on a backend: measured times compared with predicted ones. `median`
// is the run with index MeasuredTimes::median_run.
std::string validate_page(const ValidateReport& report, Study& study, const Timeline& median);

// The page of a replayed trace, with operations in place of a plan's steps. `report` must have no
// findings, and must have details, critical path and Timeline::work.
std::string replay_page(const ReplayReport& report, const Topology& topology);

// The page of a sweep: how close to the bound each planner is on each mesh.
std::string sweep_page(const SweepReport& report);

// The page that compares two reports: figures as pairs of bars, and the differences of each list.
std::string compare_page(const Comparison& comparison);

}  // namespace reshard::sim
