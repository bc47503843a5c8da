// SPDX-License-Identifier: BSD-3-Clause
// Writes a sweep as tables and as CSV.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/report/facts.h"
#include "sim/report/ratios.h"
#include "sim/report/sweep_report.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

std::string pair_table(const SweepReport& report, std::size_t width) {
  std::vector<std::string> titles{"mesh", "from", "to", ">bound"};
  for (const std::string& planner : report.planners) titles.push_back(">" + planner);
  Table table(titles);
  std::size_t step = report.planners.size();
  for (std::size_t i = 0; i + step <= report.rows.size(); i += step) {
    const SweepRow& first = report.rows[i];
    std::vector<std::string> cells{first.mesh, first.from, first.to, duration_text(first.bound_ps)};
    for (std::size_t p = i; p < i + step; ++p) {
      const SweepRow& row = report.rows[p];
      cells.push_back(row.time_ps ? ratio_of(*row.time_ps, row.bound_ps) : "refused");
    }
    table.add_row(std::move(cells));
  }
  return fmt::format("\n{}", table.text(width));
}

std::string quoted_where_needed(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string integer_text(std::optional<std::int64_t> value) {
  return value ? std::to_string(*value) : std::string{};
}

}  // namespace

namespace {

// "p2p has won its communicators back after 1 to 24 uses on 12 of 40 pairs, on half of these after
// 3".
void add_won_back(const SweepReport& report, Facts& facts) {
  std::vector<std::int64_t> uses;
  std::int64_t asked = 0;
  for (const SweepRow& row : report.rows) {
    if (row.planner != "p2p" || !row.first_use_ps || row.bound_ps == 0) continue;
    ++asked;
    if (row.won_back_after) uses.push_back(*row.won_back_after);
  }
  if (asked == 0) return;
  std::sort(uses.begin(), uses.end());
  facts.add("first use",
            uses.empty()
                ? fmt::format("p2p is never the fastest on any of {}", counted(asked, "pair"))
                : fmt::format("p2p recovers the cost of its communicators after {} to {} uses on "
                              "{} of {}, on half of these within {}",
                              uses.front(), uses.back(), uses.size(), counted(asked, "pair"),
                              uses[(uses.size() - 1) / 2]));
}

}  // namespace

std::string sweep_table(const SweepReport& report, bool verbose, std::size_t width) {
  Facts head;
  head.add("tensor", fmt::format("{}[{}]", text(report.dtype), text(report.shape)));
  head.add("meshes", fmt::format("{}", fmt::join(report.meshes, ", ")));
  head.add("topology", report.topology);
  std::int64_t refused = report.pairs - report.planned;
  std::string unplanned = refused > 0 ? fmt::format("{} refused by every planner, ", refused) : "";
  head.add("pairs", fmt::format("{} planned and proved, {}{} forbidden by DTensor", report.planned,
                                unplanned, report.forbidden));
  add_won_back(report, head);
  if (!report.phases.empty()) head.add("phases", text(report.phases));
  Table table({"mesh", "planner", ">pairs with a bound", ">at the bound", ">refused", ">mean ratio",
               ">worst ratio", "worst pair", "lost to"});
  for (const SweepSummary& entry : summarize(report)) {
    const SweepRow* worst = entry.worst;
    table.add_row({entry.mesh, entry.planner, std::to_string(entry.pairs),
                   std::to_string(entry.at_bound), std::to_string(entry.refused),
                   ratio_text(entry.geometric_mean_e4),
                   worst == nullptr ? "-" : ratio_of(*worst->time_ps, worst->bound_ps),
                   worst == nullptr ? "-" : pair_text(*worst),
                   worst == nullptr || !worst->lost ? "-" : text(*worst->lost)});
  }
  return head.text(width) + "\n" + table.text(width) + (verbose ? pair_table(report, width) : "");
}

std::string sweep_csv(const SweepReport& report) {
  std::string out =
      "mesh,from,to,planner,time_ps,bytes_received_max,bound_ps,ratio_to_bound,"
      "algbw_bytes_per_s,busbw_bytes_per_s";
  out += report.cold ? ",first_use_ps,won_back_after\r\n" : "\r\n";
  for (const SweepRow& row : report.rows) {
    std::optional<std::int64_t> ratio;
    if (row.time_ps) ratio = ratio_e4(*row.time_ps, row.bound_ps);
    for (const std::string* text : {&row.mesh, &row.from, &row.to, &row.planner})
      out += quoted_where_needed(*text) + ",";
    out += fmt::format(
        "{},{},{},{},{},{}", integer_text(row.time_ps), integer_text(row.bytes_received_max),
        row.bound_ps, ratio ? decimal_text(*ratio, 10'000, 4) : std::string{},
        integer_text(row.rates.algorithm_bytes_per_s), integer_text(row.rates.bus_bytes_per_s));
    if (report.cold)
      out +=
          fmt::format(",{},{}", integer_text(row.first_use_ps), integer_text(row.won_back_after));
    out += "\r\n";
  }
  return out;
}

}  // namespace reshard::sim
