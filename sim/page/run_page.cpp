// SPDX-License-Identifier: BSD-3-Clause
// The page of one plan and its run: figures, steps, and the panels that pages of runs share.
#include "sim/page/pages.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/units.h"
#include "core/traffic/workload.h"
#include "sim/page/page.h"
#include "sim/page/panels/panels.h"
#include "sim/picture/pictures.h"
#include "sim/report/facts.h"
#include "sim/report/writers/stage_writer.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostSteps = 500;

std::vector<Figure> figures_of(const RunReport& report) {
  std::int64_t bound_ps = report.bound.time_ps();
  std::vector<Figure> out{
      {"time", duration_text(report.time_ps), fmt::format("carried by {}", report.transport)},
      {"bound", duration_text(bound_ps),
       fmt::format("limited by {}", text(report.bound.limited_by()))},
      {"ratio to bound", ratio_of(report.time_ps, bound_ps), "1 is the physical limit"},
      {"received, fullest rank", bytes_text(report.bytes.received_max),
       bytes_text(report.bytes.received_total) + " in total"},
      {"peak memory", bytes_text(report.bytes.peak_max), "on the fullest rank"}};
  return out;
}

void list_steps(Page& page, const RunReport& report) {
  Node panel = page.add_panel("steps", "Steps");
  if (report.steps.empty()) {
    add(panel, "p", {}, "There are no steps: nothing has to be done.");
    return;
  }
  std::size_t shown = std::min(kMostSteps, report.steps.size());
  HtmlTable table(panel, fmt::format("{} of {} steps", shown, report.steps.size()),
                  {">step", "kind", "axis", "ranks", ">received", ">start", ">end", "why"});
  for (std::size_t s = 0; s < shown; ++s) {
    const StepRow& step = report.steps[s];
    table.add_row({Cell::count(static_cast<std::int64_t>(s)), step.kind,
                   joined(step.axes, ", ", [](int axis) { return std::to_string(axis); }),
                   ranks_name(step.ranks), Cell::bytes(step.bytes), Cell::time(step.start_ps),
                   Cell::time(step.end_ps),
                   joined(step.why, "; ", [](const std::string& why) { return why; })});
  }
}

void list_stages(Page& page, const RunReport& report) {
  if (report.stages.empty()) return;
  std::size_t shown = std::min(kMostSteps, report.stages.size());
  HtmlTable table(page.add_panel("stages", "Stages"),
                  fmt::format("{} of {} stages", shown, report.stages.size()),
                  {">stage", "after", "tensors", ">steps", ">received", ">start", ">end"});
  for (std::size_t s = 0; s < shown; ++s) {
    const StageRow& stage = report.stages[s];
    table.add_row(
        {Cell::count(static_cast<std::int64_t>(s)),
         joined(stage.after, ", ", [](std::int32_t before) { return std::to_string(before); }),
         tensors_text(stage), Cell::count(stage.steps), Cell::bytes(stage.bytes),
         Cell::time(stage.extent.start_ps), Cell::time(stage.extent.end_ps)});
  }
}

constexpr std::size_t kMostShardings = 8;

// The tensor, or the first one of each kind.
void draw_shardings(Page& page, const RunReport& report) {
  std::vector<const Request*> tensors;
  if (report.job)
    for (const GroupFacts& kind : report.job->facts.kinds) tensors.push_back(&kind.first);
  else
    tensors.push_back(&report.tensors.front());
  std::size_t shown = std::min(kMostShardings, tensors.size());
  std::string what = !report.job ? "the tensor is"
                     : shown == tensors.size()
                         ? std::string("one tensor of each kind is")
                         : fmt::format("one tensor of each of the first {} kinds is", shown);
  Node panel = page.add_panel(
      "sharding", "Sharding",
      fmt::format("Where {} before and after; the same colour is the same data.", what));
  for (std::size_t i = 0; i < shown; ++i) {
    if (report.job && !tensors[i]->name().empty())
      add(panel, "p", {{"class", "aside"}}, tensors[i]->name());
    draw_sharding(add_frame(panel), *tensors[i]);
  }
}

}  // namespace

std::string run_title(const RunReport& report) {
  return joined(request_lines(report), "; ", [](const std::string& line) { return line; });
}

std::vector<Fact> run_facts(const RunReport& report) {
  std::vector<Fact> out{
      {"topology", fmt::format("{}, {} of {} devices", report.topology, report.ranks.size(),
                               report.topology_devices)},
      {"planner", report.planner == report.planner_asked
                      ? report.planner
                      : fmt::format("{}, which chose {}", report.planner_asked, report.planner)}};
  if (report.kv)
    for (auto& [name, text] : kv_lines(*report.kv)) out.push_back({name, text});
  if (report.as_one)
    out.push_back({"as one job", fmt::format("{} by {}", duration_text(report.as_one->time_ps),
                                             report.as_one->planner)});
  for (const std::string& assumed : report.assumed) out.push_back({"assumed", assumed});
  out.push_back({"proof", "every destination element, from index sets"});
  if (report.data && report.data->checked)
    out.push_back({"data", fmt::format("{} elements moved and compared{}", report.data->elements,
                                       report.data->full_size ? "" : ", at a reduced size")});
  if (report.job && report.job->facts.full)
    out.push_back({"fullest links", full_links_text(*report.job->facts.full, report.time_ps)});
  if (report.job && report.job->lost.by != LostTime::By::Nothing)
    out.push_back({"lost to", text(report.job->lost)});
  if (report.first_use)
    out.push_back({"first use", duration_text(report.first_use->first_use_ps()) + " more"});
  return out;
}

void add_run_panels(Page& page, const RunReport& report, Study& study,
                    std::string_view timeline_heading) {
  const Timeline& timeline = study.flows();
  const Topology& topology = study.topology();
  if (report.time_ps > 0)
    draw_timeline(
        page.add_panel(
            "timeline", timeline_heading,
            "What each rank does over time, by step of the plan, and what the run waits for."),
        {workload_of(study.shared_plan_in_series()),
         {},
         timeline,
         report.path ? &*report.path : nullptr});
  if (report.job)
    draw_kinds(
        page.add_panel("tensors", "Tensors",
                       "What each kind of tensor has of the run, most received bytes first."),
        report.job->facts.kinds, report.time_ps);
  if (!report.alternatives.empty())
    draw_alternatives(
        page.add_panel("alternatives", "Alternatives", "The plans that auto compared."),
        report.alternatives, report.bound.time_ps());
  if (report.buffers != nullptr)
    draw_buffers(page.add_panel("buffers", "Buffers",
                                "What lies where in the buffers of ranks, in memory order; the "
                                "same colour is the same tensor."),
                 *report.buffers);
  draw_shardings(page, report);
  if (report.bytes.received_total > 0) {
    draw_topology(
        add_frame(page.add_panel("topology", "Topology", "What each link carries over time.")),
        topology, {timeline.resources, report.time_ps});
    draw_traffic(
        page.add_panel("traffic", "Traffic", "Who sends how much to whom, over all steps."),
        timeline.flows, topology);
    draw_links(page.add_panel("links", "Links",
                              "Link utilisation over time, from none to all of the capacity."),
               timeline, topology);
  }
  draw_memory(page.add_panel("memory", "Memory", "Peak memory of each rank."),
              memory_of(study.plan_in_series(), report.bytes));
  list_stages(page, report);
  list_steps(page, report);
}

std::string run_page(std::string_view kind, const RunReport& report, Study& study,
                     const PageOpening& opening) {
  Page page(kind, opening.title.empty() ? run_title(report) : opening.title);
  draw_figures(page.header(), figures_of(report));
  std::vector<Fact> facts = opening.facts;
  for (Fact& fact : run_facts(report)) facts.push_back(std::move(fact));
  draw_facts(page.header(), facts);
  if (report.path) draw_causes(page.header(), *report.path);
  if (opening.panels) opening.panels(page);
  add_run_panels(page, report, study, "Timeline");
  return page.text();
}

namespace {

std::vector<Figure> figures_of(const ValidateReport& report) {
  const RunReport& predicted = report.predicted;
  const Spread& total = report.measured.total;
  const ValueFacts& values = report.values;
  return {{"measured", duration_text(total.median_ps),
           fmt::format("median of {}", counted(report.iterations, "run"))},
          {"predicted", duration_text(predicted.time_ps), "for " + predicted.topology},
          {"measured to predicted", ratio_of(total.median_ps, predicted.time_ps)},
          {"wrong elements", std::to_string(values.wrong()),
           fmt::format("of {}, compared bit for bit", values.elements())},
          {"received, fullest rank", bytes_text(predicted.bytes.received_max),
           bytes_text(predicted.bytes.received_total) + " in total"}};
}

}  // namespace

std::string validate_page(const ValidateReport& report, Study& study, const Timeline& median) {
  const RunReport& predicted = report.predicted;
  Page page("validation", run_title(predicted));
  draw_figures(page.header(), figures_of(report));
  std::vector<Fact> facts = run_facts(predicted);
  facts.insert(facts.begin(), {"backend", fmt::format("{}: {}", report.backend, report.library)});
  draw_facts(page.header(), facts);
  draw_measured(page.add_panel("measured", "Predicted and measured",
                               "By step, from the start of its first part to the end of its last."),
                report);
  if (median.end_ps > 0)
    draw_timeline(page.add_panel("measured-timeline", "Measured timeline",
                                 "What each rank did over time, in the median run."),
                  {workload_of(study.shared_plan_in_series()), {}, median});
  add_run_panels(page, predicted, study, "Predicted timeline");
  return page.text();
}

}  // namespace reshard::sim
