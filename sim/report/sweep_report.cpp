// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/integers.h"
#include "core/base/units.h"
#include "sim/report/json_parts.h"
#include "sim/report/run_report.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

std::string pair_text(const SweepRow& row) {
  return fmt::format("{} -> {} on {}", row.from, row.to, row.mesh);
}

SweepSummary summarize(const SweepReport& report, const std::string& planner) {
  SweepSummary out;
  out.planner = planner;
  const SweepRow* worst = nullptr;
  // The mean is taken over logarithms: a product of thousands of ratios could leave the range of a
  // double.
  double logarithms = 0;
  for (const SweepRow& row : report.rows) {
    if (row.planner != planner) continue;
    if (!row.time_ps) ++out.refused;
    if (!row.time_ps || row.bound_ps == 0) continue;
    ++out.pairs;
    if (*row.time_ps == row.bound_ps) ++out.at_bound;
    logarithms +=
        std::log(static_cast<double>(*row.time_ps)) - std::log(static_cast<double>(row.bound_ps));
    if (worst == nullptr ||
        Int128{*row.time_ps} * worst->bound_ps > Int128{*worst->time_ps} * row.bound_ps)
      worst = &row;
  }
  if (worst != nullptr) {
    out.geometric_mean = std::exp(logarithms / static_cast<double>(out.pairs));
    out.worst_ratio_e4 = ratio_e4(*worst->time_ps, worst->bound_ps);
    out.worst_pair = pair_text(*worst);
  }
  return out;
}

// Four decimals; libraries may differ in the last bit of a logarithm, which these digits do not
// show.
std::int64_t rounded_e4(double value) {
  return static_cast<std::int64_t>(std::floor(value * 10'000 + 0.5));
}

std::string in_csv(const std::string& text) {
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

// Rows come pair after pair, in each planner after planner.
std::string pair_table(const SweepReport& report) {
  std::vector<Table::Column> columns{{"mesh"}, {"from"}, {"to"}, {"bound", Table::Align::Right}};
  for (const std::string& planner : report.planners)
    columns.push_back({planner, Table::Align::Right});
  Table table(columns);
  std::size_t step = report.planners.size();
  for (std::size_t i = 0; i + step <= report.rows.size(); i += step) {
    const SweepRow& first = report.rows[i];
    std::vector<std::string> cells{first.mesh, first.from, first.to, duration_text(first.bound_ps)};
    for (std::size_t p = 0; p < step; ++p) {
      const SweepRow& row = report.rows[i + p];
      cells.push_back(row.time_ps ? ratio_text(ratio_e4(*row.time_ps, row.bound_ps)) : "refused");
    }
    table.add_row(std::move(cells));
  }
  return fmt::format("\n{}", table.text());
}

}  // namespace

std::vector<SweepSummary> summarize(const SweepReport& report) {
  std::vector<SweepSummary> out;
  for (const std::string& planner : report.planners) out.push_back(summarize(report, planner));
  return out;
}

std::string sweep_csv(const SweepReport& report) {
  std::string out = "mesh,from,to,planner,time_ps,bytes_received_max,bound_ps,ratio_to_bound\r\n";
  for (const SweepRow& row : report.rows) {
    std::string ratio = row.time_ps && row.bound_ps > 0
                            ? ratio_text(ratio_e4(*row.time_ps, row.bound_ps))
                            : std::string{};
    out += fmt::format("{},{},{},{},{},{},{},{}\r\n", in_csv(row.mesh), in_csv(row.from),
                       in_csv(row.to), in_csv(row.planner), integer_text(row.time_ps),
                       integer_text(row.bytes_received_max), row.bound_ps, ratio);
  }
  return out;
}

std::string sweep_json(const SweepReport& report) {
  auto or_null = [](std::optional<std::int64_t> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json out;
  out["schema"] = "reshard.sweep/1";
  out["shape"] = shape_json(report.shape);
  out["dtype"] = report.dtype;
  out["topology"] = report.topology;
  out["meshes"] = report.meshes;
  out["pairs"] = report.pairs;
  out["forbidden"] = report.forbidden;
  Json summary = Json::array();
  for (const SweepSummary& entry : summarize(report)) {
    Json row;
    row["planner"] = entry.planner;
    row["pairs"] = entry.pairs;
    row["refused"] = entry.refused;
    row["at_bound"] = entry.at_bound;
    row["geometric_mean_ratio"] =
        entry.geometric_mean ? ratio_json(rounded_e4(*entry.geometric_mean)) : Json(nullptr);
    row["worst_ratio"] = ratio_json(entry.worst_ratio_e4);
    row["worst_pair"] = entry.worst_pair.empty() ? Json(nullptr) : Json(entry.worst_pair);
    summary.push_back(std::move(row));
  }
  out["summary"] = std::move(summary);
  Json rows = Json::array();
  for (const SweepRow& row : report.rows) {
    Json line;
    line["mesh"] = row.mesh;
    line["from"] = row.from;
    line["to"] = row.to;
    line["planner"] = row.planner;
    line["time_ps"] = or_null(row.time_ps);
    line["bytes_received_max"] = or_null(row.bytes_received_max);
    line["bound_ps"] = row.bound_ps;
    rows.push_back(std::move(line));
  }
  out["rows"] = std::move(rows);
  return written(out);
}

std::string sweep_table(const SweepReport& report, bool verbose) {
  std::string meshes;
  for (const std::string& mesh : report.meshes)
    meshes += fmt::format("{}{}", meshes.empty() ? "" : ", ", mesh);
  Facts head;
  head.add("tensor", fmt::format("{}[{}]", report.dtype, report.shape));
  head.add("meshes", meshes);
  head.add("topology", report.topology);
  std::int64_t refused = report.pairs - report.planned;
  std::string unplanned = refused > 0 ? fmt::format("{} refused by every planner, ", refused) : "";
  head.add("pairs", fmt::format("{} planned and proved, {}{} forbidden by DTensor", report.planned,
                                unplanned, report.forbidden));

  Table table({{"planner"},
               {"pairs with a bound", Table::Align::Right},
               {"at the bound", Table::Align::Right},
               {"refused", Table::Align::Right},
               {"geometric mean", Table::Align::Right},
               {"worst ratio", Table::Align::Right},
               {"worst pair"}});
  for (const SweepSummary& entry : summarize(report))
    table.add_row(
        {entry.planner, std::to_string(entry.pairs), std::to_string(entry.at_bound),
         std::to_string(entry.refused),
         entry.geometric_mean ? decimal_text(rounded_e4(*entry.geometric_mean), 10'000, 4) : "-",
         ratio_text(entry.worst_ratio_e4), entry.worst_pair.empty() ? "-" : entry.worst_pair});
  return head.text() + "\n" + table.text() + (verbose ? pair_table(report) : std::string{});
}

}  // namespace reshard::sim
