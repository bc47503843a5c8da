// SPDX-License-Identifier: BSD-3-Clause
// Tables of one plan, in DTensor's words.
#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/report/run_report.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

std::string axes_text(const std::vector<int>& axes) {
  std::string out;
  for (int axis : axes) out += fmt::format("{}{}", out.empty() ? "" : ",", axis);
  return out.empty() ? "-" : out;
}

std::string time_text(std::optional<std::int64_t> ps) { return ps ? duration_text(*ps) : "-"; }

std::string step_table(const RunReport& report, bool reasons) {
  if (report.steps.empty()) return "no steps: nothing has to be done\n";
  Table table({{"step", Table::Align::Right},
               {"kind"},
               {"axis"},
               {"ranks"},
               {"bytes", Table::Align::Right},
               {"start", Table::Align::Right},
               {"end", Table::Align::Right},
               {reasons ? "why" : ""}});
  for (std::size_t s = 0; s < report.steps.size(); ++s) {
    const StepRow& step = report.steps[s];
    std::string why;
    if (reasons)
      for (const std::string& reason : step.why) why += (why.empty() ? "" : "; ") + reason;
    table.add_row({std::to_string(s), step.kind, axes_text(step.axes), shortened(step.ranks),
                   bytes_text(step.bytes), time_text(step.start_ps), time_text(step.end_ps), why});
  }
  return table.text();
}

std::string limit_text(const Bound& bound) {
  return fmt::format("{} (cut {}, volume {}, latency {}; limited by {})",
                     duration_text(bound.time_ps()), duration_text(bound.cut_ps),
                     duration_text(bound.volume_ps), duration_text(bound.latency_ps),
                     text(bound.limited_by()));
}

void add_bytes(const RunReport& report, Facts& facts) {
  facts.add("received", fmt::format("at most {} by a rank, {} in all, {} of it padding",
                                    bytes_text(report.bytes_received_max),
                                    bytes_text(report.bytes_received_total),
                                    bytes_text(report.bytes_padding_total)));
  facts.add("peak memory", bytes_text(report.peak_bytes_max) + " on the fullest rank");
  std::string classes;
  for (const ClassBytes& entry : report.classes)
    classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", text(entry.transport),
                           bytes_text(entry.bytes));
  if (!classes.empty()) facts.add("by link class", classes);
}

void add_times(const RunReport& report, Facts& facts) {
  facts.add("time", duration_text(report.time_ps));
  facts.add("bound", limit_text(report.bound));
  facts.add("ratio to bound", ratio_text(ratio_e4(report.time_ps, report.bound.time_ps())));
}

std::string data_text(const DataFacts& data) {
  if (!data.checked) return "not moved: " + data.note;
  std::string out = fmt::format("{} elements [{}], {}", data.elements, data.shape,
                                data.full_size ? "full size" : "reduced size");
  if (!data.note.empty()) out += " (" + data.note + ")";
  if (data.digest) out += ", digest " + *data.digest;
  return out;
}

std::string link_table(const RunReport& report) {
  if (report.links.empty()) return {};
  Table table({{"busiest links"},
               {"bytes", Table::Align::Right},
               {"busy", Table::Align::Right},
               {"utilisation", Table::Align::Right}});
  for (const LinkUse& link : report.links)
    table.add_row({link.name, bytes_text(link.bytes), duration_text(link.busy_ps),
                   decimal_text(utilisation_e4(link, report.time_ps), 100, 1) + " %"});
  return fmt::format("\n{}", table.text());
}

void add_cache(const RunReport& report, Facts& facts) {
  if (!report.cache) return;
  const CacheStatistics& cache = *report.cache;
  facts.add("plan cache", fmt::format("{} hits, {} misses, {} of {} entries", cache.hits,
                                      cache.misses, cache.size, cache.capacity));
}

// Ranks with the same figures are one row.
std::string rank_table(const RunReport& report) {
  Table table({{"ranks"}, {"received", Table::Align::Right}, {"peak memory", Table::Align::Right}});
  std::size_t count = report.rank_ids.size();
  for (std::size_t i = 0; i < count;) {
    std::vector<Rank> alike;
    std::size_t j = i;
    for (; j < count && report.received_by_rank[j] == report.received_by_rank[i] &&
           report.peak_by_rank[j] == report.peak_by_rank[i];
         ++j)
      alike.push_back(report.rank_ids[j]);
    table.add_row({shortened(ranks_text(alike)), bytes_text(report.received_by_rank[i]),
                   bytes_text(report.peak_by_rank[i])});
    i = j;
  }
  return fmt::format("\n{}", table.text());
}

}  // namespace

std::string shortened(const std::string& ranks) {
  return ranks.size() <= 24 ? ranks : ranks.substr(0, 21) + "...";
}

void add_head(const RunReport& report, Facts& facts) {
  facts.add("request", report.request_name.empty() ? report.request
                                                   : report.request_name + ": " + report.request);
  facts.add("topology", fmt::format("{} ({} of {} devices)", report.topology, report.request_ranks,
                                    report.topology_devices));
  facts.add("planner",
            report.planner == report.planner_asked
                ? report.planner
                : fmt::format("{}, which took {}", report.planner_asked, report.planner));
}

std::string simulate_table(const RunReport& report, bool verbose) {
  Facts head, facts;
  add_head(report, head);
  add_bytes(report, facts);
  facts.add("proof", "every destination element, from index sets");
  if (report.data) facts.add("data checked", data_text(*report.data));
  add_times(report, facts);
  if (verbose) add_cache(report, facts);
  return head.text() + "\n" + step_table(report, false) + "\n" + facts.text() + link_table(report);
}

std::string plan_table(const RunReport& report, bool explain, bool verbose) {
  Facts head, facts;
  add_head(report, head);
  if (explain)
    for (const std::string& reason : report.why) head.add("why", reason);
  add_bytes(report, facts);
  facts.add("proof", "every destination element, from index sets");
  add_times(report, facts);
  facts.add("PyTorch's cost",
            report.torch_cost_us
                ? fmt::format("{:.3f}", *report.torch_cost_us) +
                      " us by its model, for its greedy planner's steps"
                : "its model knows neither requests across meshes nor _StridedShard");
  if (verbose) add_cache(report, facts);
  return head.text() + "\n" + step_table(report, explain) + "\n" + facts.text() +
         rank_table(report);
}

}  // namespace reshard::sim
