// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/units.h"
#include "sim/report/json_parts.h"
#include "sim/report/run_report.h"
#include "sim/report/table.h"

namespace reshard::sim {

namespace {

constexpr std::size_t kLinksShown = 5, kKindsShown = 12;

const char* limited_by(const ReplayReport& report) {
  if (report.bound_ps == 0) return "none";
  return report.path_bound_ps >= report.cut_bound_ps ? "path" : "cut";
}

// A trace repeats itself: tensors of the same layer kind differ in name only. One row per request
// and planner, in order of first appearance.
struct Kind {
  const ReplayRow* first = nullptr;
  std::int64_t count = 0, bytes = 0, bound_ps = 0;
};

std::vector<Kind> kinds_of(const std::vector<ReplayRow>& rows) {
  std::vector<Kind> kinds;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const ReplayRow& row : rows) {
    auto [at, added] = index.try_emplace({row.text, row.planner}, kinds.size());
    if (added) kinds.push_back({&row, 0, 0, row.bound_ps});
    Kind& kind = kinds[at->second];
    ++kind.count;
    kind.bytes += row.bytes_received;
  }
  return kinds;
}

std::string kinds_table(const ReplayReport& report) {
  std::vector<Kind> kinds = kinds_of(report.requests);
  if (kinds.empty()) return {};
  Table table({{"count", Table::Align::Right},
               {"request"},
               {"planner"},
               {"received", Table::Align::Right},
               {"bound, alone", Table::Align::Right}});
  for (std::size_t i = 0; i < std::min(kKindsShown, kinds.size()); ++i) {
    const Kind& kind = kinds[i];
    table.add_row({std::to_string(kind.count), kind.first->text, kind.first->planner,
                   bytes_text(kind.bytes), duration_text(kind.bound_ps)});
  }
  std::string more =
      kinds.size() > kKindsShown
          ? fmt::format("(and {} more; -v shows every line)\n", kinds.size() - kKindsShown)
          : std::string{};
  return fmt::format("\n{}{}", table.text(), more);
}

std::string rows_table(const ReplayReport& report) {
  std::vector<const ReplayRow*> rows;
  for (const ReplayRow& row : report.requests) rows.push_back(&row);
  for (const ReplayRow& row : report.others) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ReplayRow* a, const ReplayRow* b) { return a->line < b->line; });
  auto time = [](std::optional<std::int64_t> ps) {
    return ps ? duration_text(*ps) : std::string("-");
  };
  Table table({{"line", Table::Align::Right},
               {"op"},
               {"name"},
               {"planner"},
               {"start", Table::Align::Right},
               {"end", Table::Align::Right},
               {"received", Table::Align::Right},
               {"what"}});
  for (const ReplayRow* row : rows)
    table.add_row({std::to_string(row->line), row->op, row->name.empty() ? row->id : row->name,
                   row->planner, time(row->start_ps), time(row->end_ps),
                   bytes_text(row->bytes_received), row->text});
  return fmt::format("\n{}", table.text());
}

std::string links_table(const ReplayReport& report) {
  if (report.links.empty()) return {};
  Table table({{"busiest links"},
               {"bytes", Table::Align::Right},
               {"busy", Table::Align::Right},
               {"utilisation", Table::Align::Right}});
  for (std::size_t i = 0; i < std::min(kLinksShown, report.links.size()); ++i) {
    const ReplayLink& link = report.links[i];
    table.add_row({link.name, bytes_text(link.bytes), duration_text(link.busy_ps),
                   decimal_text(link.utilisation_ppm, 10'000, 1) + " %"});
  }
  return fmt::format("\n{}", table.text());
}

std::string data_text(const ReplayReport& report) {
  if (report.data_checked == 0)
    return report.requests.empty() ? "no redistributions" : "no bytes moved (--data proof)";
  std::string full = "all at full size";
  if (report.data_full_size < report.data_checked)
    full = fmt::format("{} at full size and {}, above the data budget, at a reduced one",
                       report.data_full_size, report.data_checked - report.data_full_size);
  return fmt::format("{} of {} different requests, {}, {} elements compared", report.data_checked,
                     report.different_requests, full, report.elements_checked);
}

Json row_json(const ReplayRow& row) {
  auto or_null = [](std::optional<std::int64_t> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json out;
  out["line"] = row.line;
  out["op"] = row.op;
  out["id"] = row.id.empty() ? Json(nullptr) : Json(row.id);
  out["name"] = row.name.empty() ? Json(nullptr) : Json(row.name);
  out["text"] = row.text;
  out["planner"] = row.planner.empty() ? Json(nullptr) : Json(row.planner);
  out["start_ps"] = or_null(row.start_ps);
  out["end_ps"] = or_null(row.end_ps);
  out["bytes_received"] = row.bytes_received;
  out["bound_ps"] = row.bound_ps;
  return out;
}

Json rows_json(const std::vector<ReplayRow>& rows) {
  Json out = Json::array();
  for (const ReplayRow& row : rows) out.push_back(row_json(row));
  return out;
}

Json replay_links_json(const ReplayReport& report) {
  Json out = Json::array();
  for (const ReplayLink& link : report.links) {
    Json row;
    row["name"] = link.name;
    row["bytes"] = link.bytes;
    row["busy_ps"] = link.busy_ps;
    row["utilisation"] = static_cast<double>(link.utilisation_ppm) / 1e6;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

std::string replay_table(const ReplayReport& report, bool verbose) {
  Facts head, facts;
  head.add("trace", fmt::format("{}: {} operations, {} of them redistributions", report.trace,
                                report.operations, report.requests.size()));
  head.add("topology", report.topology);

  std::string classes;
  for (const ReplayClass& entry : report.classes)
    classes += fmt::format("{}{} {} in {} flows", classes.empty() ? "" : ", ",
                           text(entry.transport), bytes_text(entry.bytes), entry.flows);
  facts.add("received",
            bytes_text(report.bytes_received_total) + " from other ranks, padding included");
  if (!classes.empty()) facts.add("by link class", classes);
  facts.add("proof", report.requests.empty()
                         ? "no redistributions"
                         : fmt::format("all {} redistributions, at full size, from index sets",
                                       report.requests.size()));
  facts.add("data checked", data_text(report));
  facts.add("time", duration_text(report.time_ps));
  facts.add("bound",
            fmt::format("{} (longest path {}, cut {}; limited by {})",
                        duration_text(report.bound_ps), duration_text(report.path_bound_ps),
                        duration_text(report.cut_bound_ps), limited_by(report)));
  facts.add("ratio to bound", ratio_text(ratio_e4(report.time_ps, report.bound_ps)));
  if (report.cache)
    facts.add("plan cache",
              fmt::format("{} hits, {} misses, {} of {} entries", report.cache->hits,
                          report.cache->misses, report.cache->size, report.cache->capacity));
  facts.add("digest", report.digest.hex());
  return fmt::format("{}{}\n{}{}{}", head.text(), kinds_table(report), facts.text(),
                     links_table(report), verbose ? rows_table(report) : std::string{});
}

std::string replay_json(const ReplayReport& report) {
  Json out;
  out["schema"] = "reshard.replay/1";
  out["trace"] = report.trace;
  out["topology"] = report.topology;
  out["operations"] = report.operations;
  out["time_ps"] = report.time_ps;
  out["bytes_received_total"] = report.bytes_received_total;
  Json bound;
  bound["path_ps"] = report.path_bound_ps;
  bound["cut_ps"] = report.cut_bound_ps;
  bound["time_ps"] = report.bound_ps;
  bound["limited_by"] = limited_by(report);
  out["bound"] = std::move(bound);
  out["ratio_to_bound"] = ratio_json(ratio_e4(report.time_ps, report.bound_ps));
  out["proof"] = true;  // an unproved plan never gets as far as a report
  Json data;
  data["checked"] = report.data_checked == report.different_requests;
  data["requests_different"] = report.different_requests;
  data["requests_checked"] = report.data_checked;
  data["requests_full_size"] = report.data_full_size;
  data["elements"] = report.elements_checked;
  data["budget_bytes"] = report.data_budget_bytes;
  out["data"] = std::move(data);
  out["requests"] = rows_json(report.requests);
  out["others"] = rows_json(report.others);
  out["links"] = replay_links_json(report);
  Json classes = Json::object();
  for (const ReplayClass& entry : report.classes)
    classes[std::string(text(entry.transport))] = entry.bytes;
  out["bytes_by_class"] = std::move(classes);
  out["plan_cache"] = report.cache ? cache_json(*report.cache) : Json(nullptr);
  out["digest"] = report.digest.hex();
  return written(out);
}

}  // namespace reshard::sim
