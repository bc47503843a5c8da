// SPDX-License-Identifier: BSD-3-Clause
// Files of copies: judged and reported on, or refused; right ones as plans, and their layouts as
// requests whose plans are proved.
#include <sstream>

#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "sim/check/check_report.h"
#include "sim/check/copies_plan.h"
#include "sim/exports/exports.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    sim::CheckReport report = sim::report_of(sim::check_copies(in, "input.copies"));
    for (const Finding& finding : report.findings)
      if (finding.faults.empty() || finding.elements < 1) fuzz::broken("a finding of nothing");
    if (sim::check_text(report, 100, 80).empty() || sim::check_json(report).empty())
      fuzz::broken("a report without words");
    const Stored &source = *report.copies.source, &destination = *report.copies.destination;
    if (source.buffers().size() + destination.buffers().size() > 64) return;
    StoredRequests stored(source, destination);
    sim::lost_without_each(stored.requests());
    Plan plan = find_planner("p2p").make(Demand(stored.requests()), {});
    if (check_plan(plan).refutation) fuzz::broken("a plan that is refuted");
    sim::export_copies({plan, &stored});
    if (report.copies.proved() && check_plan(sim::plan_of(report.copies)).refutation)
      fuzz::broken("copies that are proved, but not as a plan");
  });
}
