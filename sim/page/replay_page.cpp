// SPDX-License-Identifier: BSD-3-Clause
// The page of a replayed trace: figures, then the panels and tables of its operations.
#include "sim/page/pages.h"

#include <algorithm>
#include <span>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/page/page.h"
#include "sim/page/panels/panels.h"
#include "sim/picture/pictures.h"
#include "sim/report/facts.h"
#include "sim/report/writers/replay_writer.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kMostOperations = 1000, kMostKinds = 40, kMostWaits = 40;

std::vector<Figure> figures_of(const ReplayReport& report) {
  std::vector<Figure> out{
      {"time", duration_text(report.time_ps), fmt::format("carried by {}", report.transport)},
      {"bound", duration_text(report.bound_ps), fmt::format("limited by {}", report.limited_by())},
      {"ratio to bound", ratio_of(report.time_ps, report.bound_ps), "1 is the physical limit"},
      {"received", bytes_text(report.bytes_received_total), "from other ranks, in total"},
      {"operations", std::to_string(report.operations),
       counted(static_cast<std::int64_t>(report.requests.size()), "redistribution")}};
  if (report.job)
    out.push_back({"peak memory", bytes_text(report.peak_bytes_max),
                   "on the fullest rank, during one redistribution"});
  return out;
}

std::string row_name(const ReplayRow& row) {
  if (!row.name.empty()) return row.name;
  return row.id.empty() ? fmt::format("line {}", row.line) : row.id;
}

// Lines with several tensors, such as the stages of a pipeline, and all their tensors by kind.
void show_jobs(Page& page, const ReplayReport& report) {
  if (!report.job) return;
  std::vector<TensorBar> bars;
  for (const ReplayRow& row : report.requests)
    if (row.tensors > 1)
      bars.push_back({fmt::format("{}, {} tensors", row_name(row), row.tensors),
                      {row.bytes_received, row.start_ps, row.end_ps},
                      row.bound_ps});
  if (bars.size() > 1)
    draw_tensor_bars(
        page.add_panel("jobs", "Jobs", "The lines that move several tensors together."), bars,
        report.time_ps);
  draw_kinds(page.add_panel("tensors", "Tensors",
                            "What each kind of tensor has of the run, most received bytes first."),
             report.job->kinds, report.time_ps);
}

std::vector<Fact> facts_of(const ReplayReport& report) {
  std::vector<Fact> out{{"topology", report.topology}};
  auto add_if_any = [&](const char* name, const std::string& text) {
    if (!text.empty()) out.push_back({name, text});
  };
  if (!report.requests.empty()) {
    add_if_any("proof", proof_text(report));
    add_if_any("data checked", data_text(report));
  }
  if (report.job && report.job->full)
    add_if_any("fullest links", full_links_text(*report.job->full, report.time_ps));
  add_if_any("faults", faults_text(report));
  add_if_any("late", late_text(report));
  add_if_any(report.together && report.together->joined ? "joined" : "could be one",
             together_text(report));
  add_if_any("warning", warning_text(report));
  return out;
}

std::int64_t duration_ps(const ReplayRow& row) {
  return row.end_ps.value_or(0) - row.start_ps.value_or(0);
}

// The longest operations, by line.
std::vector<const ReplayRow*> longest_of(const ReplayReport& report) {
  std::vector<const ReplayRow*> rows;
  for (const std::vector<ReplayRow>* part : {&report.requests, &report.others})
    for (const ReplayRow& row : *part) rows.push_back(&row);
  auto by_line = [](const ReplayRow* a, const ReplayRow* b) { return a->line < b->line; };
  std::stable_sort(rows.begin(), rows.end(), by_line);
  std::stable_sort(rows.begin(), rows.end(), [](const ReplayRow* a, const ReplayRow* b) {
    return duration_ps(*a) > duration_ps(*b);
  });
  rows.resize(std::min(rows.size(), kMostOperations));
  std::stable_sort(rows.begin(), rows.end(), by_line);
  return rows;
}

void list_kinds(Node panel, const ReplayReport& report) {
  std::vector<RequestKind> kinds = kinds_of(report.requests);
  if (kinds.empty()) return;
  std::stable_sort(kinds.begin(), kinds.end(), [](const RequestKind& a, const RequestKind& b) {
    return a.time_ps > b.time_ps;
  });
  std::size_t shown = std::min(kMostKinds, kinds.size());
  HtmlTable table(panel, fmt::format("{} of {} different redistributions", shown, kinds.size()),
                  {">count", "request", "planner", ">received", ">time, summed", ">bound, each"});
  for (std::size_t i = 0; i < shown; ++i)
    table.add_row({Cell::count(kinds[i].count), kinds[i].first->text, kinds[i].first->planner,
                   Cell::bytes(kinds[i].bytes), Cell::time(kinds[i].time_ps),
                   Cell::time(kinds[i].first->bound_ps)});
}

void list_recorded(Node panel, const ReplayReport& report) {
  std::vector<TakenAsRecorded> recorded;
  if (report.dispatch) recorded = recorded_facts(*report.dispatch);
  if (recorded.empty()) return;
  HtmlTable table(panel, "Calls taken as recorded", {"operator", ">calls", ">first line", "why"});
  for (const TakenAsRecorded& row : recorded)
    table.add_row({row.call, Cell::count(row.count), Cell::count(row.line), row.why});
}

void list_operations(Node panel, const ReplayReport& report) {
  std::vector<const ReplayRow*> rows = longest_of(report);
  std::size_t all = report.requests.size() + report.others.size();
  HtmlTable table(add_folded(panel, "Every operation"),
                  rows.size() < all ? fmt::format("The {} longest of {}", rows.size(), all)
                                    : fmt::format("All {}", all),
                  {">line", "op", "name", "planner", ">start", ">time", ">received", "what"});
  for (const ReplayRow* row : rows)
    table.add_row({Cell::count(row->line), row->op, row->name.empty() ? row->id : row->name,
                   row->planner, Cell::time(row->start_ps), Cell::time(duration_ps(*row)),
                   Cell::bytes(row->bytes_received), row->text});
}

std::string line_text(const ReplayReport& report, OpId op) {
  return fmt::format("line {}", report.lines[to_index(op)]);
}

void list_late(Node panel, const ReplayReport& report) {
  if (report.late.empty()) return;
  std::size_t shown = std::min(kMostWaits, report.late.size());
  HtmlTable table(panel,
                  fmt::format("{} of {} ranks that others waited for", shown, report.late.size()),
                  {"at", ">rank", ">arrived", ">after all others", ">total wait of others"});
  for (const LateArrival& late : std::span(report.late).first(shown))
    table.add_row({line_text(report, late.op), Cell::count(to_int(late.rank)),
                   Cell::time(late.arrival_ps), Cell::time(late.late_ps),
                   Cell::time(late.waited_ps)});
}

// A table of launches that waited for others, or of swaps.
void list_launches(Node panel, const std::string& caption, const ReplayReport& report,
                   std::span<const Delayed> launches) {
  if (launches.empty()) return;
  std::size_t shown = std::min(kMostWaits, launches.size());
  HtmlTable table(panel, fmt::format("{} of {} {}", shown, launches.size(), caption),
                  {"launch", "at", ">rank", "after", "at", ">waited", ">gain by swap"});
  for (const Delayed& each : launches.first(shown))
    table.add_row({each.name, line_text(report, each.op), Cell::count(to_int(each.rank)),
                   each.predecessor_name, line_text(report, each.predecessor),
                   Cell::time(each.waited_ps), Cell::time(each.gain_ps)});
}

void show_waits(Page& page, const ReplayReport& report) {
  std::vector<Delayed> delayed = delayed_by_gain(report);
  if (report.late.empty() && delayed.empty() && !report.searched) return;
  Node panel = page.add_panel(
      "waits", "Waits", "Which ranks were late, and which launches only waited for their turn.");
  list_late(panel, report);
  list_launches(panel, "launches that would start earlier in another order", report, delayed);
  if (!report.searched) return;
  const Reordered& reordered = *report.reordered;
  add(panel, "p", {{"class", "aside"}},
      fmt::format("Reordered: {} instead of {}, {} of {} orders.", duration_text(reordered.time_ps),
                  duration_text(report.time_ps),
                  counted(static_cast<std::int64_t>(reordered.swaps.size()), "swap"),
                  reordered.tried));
  list_launches(panel, "swaps, in this order", report, reordered.swaps);
}

void show_communicators(Page& page, const ReplayReport& report) {
  if (report.communicators.empty()) return;
  Node panel = page.add_panel("communicators", "Communicators",
                              "What the policy in use costs, and what the others would cost.");
  HtmlTable table(panel, "Each policy; the first is in use",
                  {"policy", ">comms", ">creation", ">pairs", ">first use", ">held", ">waited",
                   report.cold ? ">end, cold" : ">end"});
  for (const CommunicatorResult& result : report.communicators) {
    bool runs = result.hang.empty();
    Node row = table.add_row({text(result.use.policy), Cell::count(result.use.created),
                              Cell::time(result.use.making_ps), Cell::count(result.use.connected),
                              Cell::time(result.use.connecting_ps), Cell::bytes(result.use.bytes),
                              runs ? Cell::count(result.serialised_launches) : Cell("-"),
                              runs ? Cell::time(result.end_ps) : Cell("hangs")});
    if (&result == &report.communicators.front()) row.append_attribute("class") = "taken";
  }
}

void show_faults(Page& page, const ReplayReport& report) {
  if (!report.dispatch) return;
  std::vector<FaultFacts> faults = fault_facts(*report.dispatch);
  if (faults.empty()) return;
  Node panel = page.add_panel("not-as-pytorch", "Defects of PyTorch",
                              "Calls that PyTorch gets wrong or fails on.");
  HtmlTable table(panel, "Each operator and what PyTorch does",
                  {"at", "call", "what PyTorch does"});
  for (const FaultFacts& fault : faults)
    table.add_row({lines_text(fault.lines), fault.op, std::string(fault.what)});
}

}  // namespace

std::string replay_page(const ReplayReport& report, const Topology& topology) {
  Page page("replay", report.trace);
  draw_figures(page.header(), figures_of(report));
  draw_facts(page.header(), facts_of(report));
  if (report.path) draw_causes(page.header(), *report.path);
  const Timeline& timeline = report.timeline;
  if (report.time_ps > 0)
    draw_timeline(
        page.add_panel("timeline", "Timeline",
                       "What each rank does over time, by operation, and what the run waits for."),
        {report.workload, report.labels, timeline, report.path ? &*report.path : nullptr});
  show_jobs(page, report);
  show_faults(page, report);
  show_waits(page, report);
  show_communicators(page, report);
  if (!timeline.flows.empty()) {
    draw_topology(
        add_frame(page.add_panel("topology", "Topology", "What each link carries over time.")),
        topology, {timeline.resources, report.time_ps});
    draw_traffic(page.add_panel("traffic", "Traffic", "Who sends how much to whom, in total."),
                 timeline.flows, topology);
    draw_links(page.add_panel("links", "Links",
                              "Link utilisation over time, from none to all of the capacity."),
               timeline, topology);
  }
  if (!report.requests.empty())
    draw_memory(
        page.add_panel(
            "memory", "Memory",
            "Peak memory of each rank during one redistribution, without what else the job keeps."),
        greatest_memory(report.workload));
  Node operations = page.add_panel("operations", "Operations");
  list_recorded(operations, report);
  list_kinds(operations, report);
  list_operations(operations, report);
  return page.text();
}

}  // namespace reshard::sim
