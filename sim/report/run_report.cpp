// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/run_report.h"

#include <algorithm>

#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLinksShown = 5;

void add_request(const Request& request, RunReport& report) {
  report.request = request.text();
  report.request_name = request.name();
  report.shape = text(request.shape());
  report.dtype = text(request.dtype());
  report.mesh = shape_text(request.source().mesh());
  report.ranks = ranks_text(request.source().mesh().ranks());
  report.to_mesh = shape_text(request.destination().mesh());
  report.to_ranks = ranks_text(request.destination().mesh().ranks());
  report.from = request.source().placements_text();
  report.to = request.destination().placements_text();
  report.request_ranks = static_cast<std::int32_t>(request.ranks().size());
}

std::vector<StepRow> step_rows(const Plan& plan, const PlanBytes& bytes) {
  std::vector<StepRow> rows;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    std::vector<Rank> ranks;
    for (Slot slot : slots_of(plan.steps[s]))
      ranks.push_back(plan.ranks[static_cast<std::size_t>(slot)]);
    StepRow row;
    row.kind = kind_text(plan.steps[s]);
    row.axes = plan.steps[s].axes;
    row.ranks = ranks_text(ranks);
    row.bytes = bytes.received_per_step[s];
    rows.push_back(std::move(row));
  }
  return rows;
}

// A step runs from its first part's start to its last part's end.
void add_times(const Timeline& timeline, std::vector<StepRow>& rows) {
  for (const Span& span : timeline.spans) {
    if (span.step < 0 || static_cast<std::size_t>(span.step) >= rows.size()) continue;
    StepRow& row = rows[static_cast<std::size_t>(span.step)];
    row.start_ps = std::min(row.start_ps.value_or(span.start_ps), span.start_ps);
    row.end_ps = std::max(row.end_ps.value_or(span.end_ps), span.end_ps);
  }
}

void add_reasons(const Explanation& explanation, RunReport& report) {
  for (const Explanation::Line& line : explanation.lines()) {
    if (!line.step)
      report.why.push_back(line.why);
    else if (to_index(*line.step) < report.steps.size())
      report.steps[to_index(*line.step)].why.push_back(line.why);
  }
}

}  // namespace

RunReport report_on(Study& study) {
  const Plan& plan = study.plan();
  const PlanBytes& bytes = study.bytes();
  const Topology& topology = study.topology();
  const Timeline& timeline = study.timeline();
  RunReport report;
  add_request(plan.request, report);
  report.topology = topology.name();
  report.topology_devices = topology.devices();
  report.planner = report.planner_asked = plan.planner;
  report.steps = step_rows(plan, bytes);
  add_times(timeline, report.steps);
  if (study.explanation()) add_reasons(*study.explanation(), report);
  report.rank_ids = plan.ranks;
  report.received_by_rank = bytes.received_per_slot;
  report.peak_by_rank = bytes.peak_per_slot;
  report.bytes_received_max = bytes.received_max;
  report.bytes_received_total = bytes.received_total;
  report.bytes_padding_total = study.padding_total();
  report.peak_bytes_max = bytes.peak_max;
  report.time_ps = timeline.end_ps;
  report.bound = study.bound();
  report.classes = bytes_by_class(timeline, topology);
  report.links = busiest_links(timeline, topology, kLinksShown);
  return report;
}

std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps) {
  if (bound_ps == 0) return std::nullopt;
  return static_cast<std::int64_t>((Int128{time_ps} * 20'000 + bound_ps) / (Int128{bound_ps} * 2));
}

std::string ratio_text(std::optional<std::int64_t> ratio) {
  return ratio ? decimal_text(*ratio, 10'000, 4) : "-";
}

}  // namespace reshard::sim
