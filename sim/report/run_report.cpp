// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/run_report.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/study/tensors/tensor_groups.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLinksListed = 4096;

std::vector<StepRow> step_rows(const Plan& plan, const PlanBytes& bytes) {
  std::vector<StepRow> rows;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    StepRow row{
        kind_text(plan.steps[s]), plan.steps[s].axes, {}, bytes.received_per_step[s], {}, {}};
    row.stream = plan.steps[s].stream;
    for (Slot slot : slots_of(plan.steps[s])) row.ranks.push_back(plan.rank_of(slot));
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_reasons(const Explanation& explanation, RunReport& report) {
  report.alternatives = explanation.alternatives();
  for (const Explanation::Line& line : explanation.lines()) {
    if (!line.step)
      report.why.push_back(line.why);
    else if (to_index(*line.step) < report.steps.size())
      report.steps[*line.step].why.push_back(line.why);
  }
}

RunReport::JobReport job_report(Study& study) {
  const Timeline& timeline = study.timeline();
  IndexVector<TensorId, TensorUse> uses = study.tensor_uses(timeline);
  CutSets sets(study.topology(), study.plan_in_series().ranks, switches_of(study.transport()));
  RequestDemand demand;
  RunReport::JobReport out{job_facts(pointers_to(study.tensors()), uses, timeline, sets, &demand),
                           {}};
  // What kinds have in the same places counts together only in the bound of the whole.
  demand.holder_ps = study.bound().holder_ps;
  demand.entry_ps = study.bound().cut_ps;
  // Where latencies and launches are nearly everything, no link has lost the time.
  if (out.facts.full && utilisation(out.facts.full->fullest, timeline.end_ps, 100) > 0)
    out.lost = lost_time(timeline, sets, demand, study.bytes().received_total);
  return out;
}

}  // namespace

std::optional<std::int64_t> StepRow::duration_ps() const {
  if (!start_ps || !end_ps) return std::nullopt;
  return *end_ps - *start_ps;
}

std::vector<std::string> request_lines(const RunReport& report) {
  constexpr std::size_t kMostLines = 8;
  std::vector<std::string> out;
  if (report.tensors.size() > kMostLines) return {job_text(report.tensors)};
  for_each_tensor(report.tensors, [&](TensorId tensor, const Request& request) {
    out.push_back((request.name().empty() ? "" : request.name() + ": ") +
                  tensor_text(report.tensors, tensor));
  });
  return out;
}

RunReport report_on(Study& study) {
  const Plan& plan = study.plan_in_series();
  const Timeline& timeline = study.timeline();
  RunReport report(study.tensors(), plan.ranks);
  report.topology = study.topology().name();
  report.topology_devices = study.topology().devices();
  report.assumed = study.topology().node().assumed;
  report.planner = report.planner_asked = plan.planner;
  report.bytes = study.bytes();
  report.needs = study.needs();
  report.frees_sources = plan.frees_sources;
  report.steps = step_rows(plan, report.bytes);
  report.streams = stream_count(plan);
  IndexVector<std::int32_t, Extent> extents = extents_of(timeline, report.steps.size());
  for (std::size_t s = 0; s < extents.size(); ++s) {
    report.steps[s].start_ps = extents[s].start_ps;
    report.steps[s].end_ps = extents[s].end_ps;
  }
  report.stages = stage_rows(plan, report.bytes.received_per_step, timeline.spans);
  if (study.explanation()) add_reasons(*study.explanation(), report);
  report.padding_total = study.padding_total();
  report.transport = text(study.transport());
  report.time_ps = study.time_ps();
  report.ideal_time_ps = study.ideal_time_ps();
  report.bound = study.bound();
  report.classes = use_by_class(timeline, study.topology());
  std::erase_if(report.classes, [](const ClassUse& use) { return use.bytes == 0; });
  report.links = busiest_links(timeline, study.topology(), kLinksListed);
  if (report.tensors.size() > 1) report.job = job_report(study);
  return report;
}

Bandwidths bandwidths_of(const RunReport& report, std::int64_t time_ps) {
  return bandwidths_of(report.tensors, report.bytes.received_max, time_ps);
}

}  // namespace reshard::sim
