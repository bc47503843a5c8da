// SPDX-License-Identifier: BSD-3-Clause
// Writes a replayed trace as tables and as JSON.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"
#include "sim/report/facts.h"
#include "sim/report/json.h"
#include "sim/report/ratios.h"
#include "sim/report/table.h"
#include "sim/report/time_tables.h"
#include "sim/report/writers/dispatch_writer.h"
#include "sim/report/writers/job_writer.h"
#include "sim/report/writers/replay_writer.h"
#include "sim/report/writers/stage_writer.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kKindsShown = 12;

std::string path_tables(const ReplayReport& report, std::size_t width) {
  if (!report.path) return {};
  auto what = [&](const PathFacts::PathSpan& part) {
    const std::string& label = report.labels[to_index(part.op)];
    return part.step < 0 ? label : fmt::format("{}, step {}", label, part.step);
  };
  return path_tables(*report.path, "operation", what, width);
}

std::string kinds_table(const std::vector<ReplayRow>& rows, std::size_t width) {
  std::vector<RequestKind> kinds = kinds_of(rows);
  std::erase_if(kinds, [](const RequestKind& kind) { return kind.first->tensors > 1; });
  Table table({">count", "request", "planner", ">received", ">bound, alone"});
  for (std::size_t i = 0; i < std::min(kKindsShown, kinds.size()); ++i)
    table.add_row({std::to_string(kinds[i].count), kinds[i].first->text, kinds[i].first->planner,
                   bytes_text(kinds[i].bytes), duration_text(kinds[i].first->bound_ps)});
  std::string out = kinds.empty() ? std::string() : fmt::format("\n{}", table.text(width));
  if (kinds.size() > kKindsShown)
    out += fmt::format("(and {} more; -v shows every line)\n", kinds.size() - kKindsShown);
  return out;
}

// A row per line with a job of several tensors, such as the stages of a pipeline.
std::string jobs_table(const ReplayReport& report, std::size_t width) {
  Table table(
      {">line", "job", "planner", ">tensors", ">received", ">start", ">end", ">bound, alone"});
  std::size_t jobs = 0;
  for (const ReplayRow& row : report.requests) {
    if (row.tensors == 1 || ++jobs > kKindsShown) continue;
    std::string name = row.name.empty() ? row.id : row.name;
    table.add_row({std::to_string(row.line), name.empty() ? "-" : name, row.planner,
                   std::to_string(row.tensors), bytes_text(row.bytes_received),
                   time_text(row.start_ps), time_text(row.end_ps), duration_text(row.bound_ps)});
    table.add_note(row.text);
  }
  if (jobs == 0) return {};
  std::string out = fmt::format("\n{}", table.text(width));
  if (jobs > kKindsShown)
    out += fmt::format("(and {} more; -v shows every line)\n", jobs - kKindsShown);
  return out;
}

std::string rows_table(const ReplayReport& report, std::size_t width) {
  std::vector<const ReplayRow*> rows;
  for (const std::vector<ReplayRow>* part : {&report.requests, &report.others})
    for (const ReplayRow& row : *part) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ReplayRow* a, const ReplayRow* b) { return a->line < b->line; });
  Table table({">line", "op", "name", "planner", ">start", ">end", ">received", "what"});
  for (const ReplayRow* row : rows)
    table.add_row({std::to_string(row->line), row->op, row->name.empty() ? row->id : row->name,
                   row->planner, time_text(row->start_ps), time_text(row->end_ps),
                   bytes_text(row->bytes_received), row->text});
  return fmt::format("\n{}", table.text(width));
}

Json rows_json(const std::vector<ReplayRow>& rows) {
  return list_json(rows, [](const ReplayRow& row) {
    Json out{{"line", row.line},
             {"op", row.op},
             {"id", or_null(row.id)},
             {"name", or_null(row.name)},
             {"text", row.text},
             {"planner", or_null(row.planner)},
             {"transport", or_null(row.transport)},
             {"start_ps", or_null(row.start_ps)},
             {"end_ps", or_null(row.end_ps)},
             {"bytes_received", row.bytes_received},
             {"bound_ps", row.bound_ps}};
    if (row.tensors > 1) out["tensors"] = row.tensors;
    if (!row.stages.empty()) out["stages"] = stages_json(row.stages);
    return out;
  });
}

// The stages of the first job that has some, or of all jobs if `verbose`.
std::string stage_tables(const ReplayReport& report, bool verbose, std::size_t width) {
  std::string out;
  for (const ReplayRow& row : report.requests) {
    if (row.stages.empty()) continue;
    out += fmt::format("\nstages of line {}{}", row.line,
                       stage_table(row.stages, verbose, width).replace(0, 1, "\n"));
    if (!verbose) break;
  }
  return out;
}

Json late_json(const ReplayReport& report) {
  return list_json(report.late, [&](const LateArrival& late) -> Json {
    return {{"line", report.lines[to_index(late.op)]},
            {"rank", to_int(late.rank)},
            {"arrival_ps", late.arrival_ps},
            {"late_ps", late.late_ps},
            {"waited_ps", late.waited_ps}};
  });
}

Json reordered_json(const ReplayReport& report) {
  if (!report.reordered) return nullptr;
  auto pairs = [&](const std::vector<Delayed>& list) {
    return list_json(list, [&](const Delayed& pair) -> Json {
      return {{"rank", to_int(pair.rank)},
              {"line", report.lines[to_index(pair.op)]},
              {"behind_line", report.lines[to_index(pair.predecessor)]},
              {"waited_ps", pair.waited_ps},
              {"gain_ps", pair.gain_ps}};
    });
  };
  const Reordered& reordered = *report.reordered;
  return {{"searched", report.searched},
          {"time_ps", report.searched ? Json(reordered.time_ps) : Json(nullptr)},
          {"tried", reordered.tried},
          {"delayed", pairs(reordered.delayed)},
          {"swaps", report.searched ? pairs(reordered.swaps) : Json(nullptr)}};
}

Json together_json(const Together& together) {
  return {{"joined", together.joined},
          {"time_ps", together.time_ps},
          {"sets", list_json(together.sets, [](const Together::Lines& set) -> Json {
             return {{"count", set.count}, {"lines", set.lines}};
           })}};
}

std::string delayed_table(const ReplayReport& report, std::size_t width) {
  constexpr std::size_t kShown = 5;
  std::vector<Delayed> list = delayed_by_gain(report);
  Table table({"waited for its turn", ">rank", ">line", ">after line", ">waited", ">gain by swap"});
  for (std::size_t i = 0; i < std::min(kShown, list.size()); ++i)
    table.add_row({list[i].name, std::to_string(to_int(list[i].rank)),
                   std::to_string(report.lines[to_index(list[i].op)]),
                   std::to_string(report.lines[to_index(list[i].predecessor)]),
                   duration_text(list[i].waited_ps), duration_text(list[i].gain_ps)});
  return list.empty() ? std::string() : fmt::format("\n{}", table.text(width));
}

std::string swaps_table(const ReplayReport& report, std::size_t width) {
  if (!report.searched) return {};
  const Reordered& reordered = *report.reordered;
  std::string out = fmt::format("\nreordered: {} instead of {}, {} of {} orders\n",
                                duration_text(reordered.time_ps), duration_text(report.time_ps),
                                counted(static_cast<std::int64_t>(reordered.swaps.size()), "swap"),
                                reordered.tried);
  if (reordered.swaps.empty()) return out;
  Table table({"first", ">line", "on rank", "then", ">line", ">gain"});
  for (const Delayed& pair : reordered.swaps)
    table.add_row({pair.name, std::to_string(report.lines[to_index(pair.op)]),
                   std::to_string(to_int(pair.rank)), pair.predecessor_name,
                   std::to_string(report.lines[to_index(pair.predecessor)]),
                   duration_text(pair.gain_ps)});
  return out + table.text(width);
}

Json faults_json(const ReplayReport& report) {
  if (!report.fault_cost) return nullptr;
  return {{"time_without_ps", report.fault_cost->without_ps},
          {"cost_ps", report.time_ps - report.fault_cost->without_ps},
          {"grown", list_json(report.fault_cost->grown, [&](const Grown& grown) -> Json {
             return {{"line", report.lines[to_index(grown.op)]}, {"ps", grown.ps}};
           })}};
}

Json communicators_json(const CommunicatorResult& result) {
  auto seconds = [](std::int64_t ps) { return static_cast<double>(ps) / 1e12; };
  bool runs = result.hang.empty();
  return {{"policy", text(result.use.policy)},
          {"created", result.use.created},
          {"seconds", seconds(result.use.making_ps)},
          {"connected", result.use.connected},
          {"first_use_seconds", seconds(result.use.connecting_ps)},
          {"bytes", result.use.bytes},
          {"serialised_launches", runs ? Json(result.serialised_launches) : Json(nullptr)},
          {"end_ps", runs ? Json(result.end_ps) : Json(nullptr)},
          {"warning", or_null(result.use.warning)},
          {"hang", or_null(result.hang)}};
}

// The policy that ran, with the others in "others".
Json communicators_json(const std::vector<CommunicatorResult>& results, bool cold) {
  if (results.empty()) return nullptr;
  Json out = communicators_json(results.front());
  out["cold"] = cold;
  out["others"] =
      list_json(std::vector(results.begin() + 1, results.end()),
                [](const CommunicatorResult& other) { return communicators_json(other); });
  return out;
}

std::vector<std::string_view> policy_names(const std::vector<CommunicatorPolicy>& policies) {
  std::vector<std::string_view> out;
  for (CommunicatorPolicy policy : policies) out.push_back(text(policy));
  return out;
}

Json default_hang_json(const std::optional<DefaultHang>& hang) {
  if (!hang) return nullptr;
  return {{"policy", text(hang->policy)},
          {"others", policy_names(hang->others)},
          {"lines", hang->lines},
          {"hang", hang->what}};
}

std::string communicators_table(const ReplayReport& report, std::size_t width) {
  if (report.communicators.empty()) return {};
  Table table({"policy", ">comms", ">creation", ">pairs", ">first use", ">held", ">waited",
               report.cold ? ">end, cold" : ">end"});
  for (const CommunicatorResult& result : report.communicators) {
    bool runs = result.hang.empty();
    table.add_row({std::string(text(result.use.policy)), std::to_string(result.use.created),
                   duration_text(result.use.making_ps), std::to_string(result.use.connected),
                   duration_text(result.use.connecting_ps), bytes_text(result.use.bytes),
                   runs ? std::to_string(result.serialised_launches) : "-",
                   runs ? duration_text(result.end_ps) : "hangs"});
  }
  return fmt::format("\n{}", table.text(width));
}

}  // namespace

std::string warning_text(const ReplayReport& report) {
  if (!report.communicators.empty()) return report.communicators.front().use.warning;
  if (!report.default_hang) return {};
  const DefaultHang& hang = *report.default_hang;
  return fmt::format(
      "messages name no communicator; with PyTorch's default (--communicators {}) this hangs{}: {}",
      text(hang.policy),
      hang.others.empty()
          ? std::string()
          : fmt::format(", and with {}", fmt::join(policy_names(hang.others), ", ")),
      hang.what);
}

std::string cycle_table(const TraceFinding& finding, std::size_t width) {
  if (finding.cycle.empty()) return {};
  constexpr std::size_t kShown = 32;
  Table table({">rank", ">at line", "held by", ">after line", ">waits for line", ">of rank"});
  for (std::size_t i = 0; i < std::min(kShown, finding.cycle.size()); ++i) {
    const TraceWait& wait = finding.cycle[i];
    table.add_row({std::to_string(to_int(wait.rank)), std::to_string(wait.line), wait.held_by,
                   std::to_string(wait.predecessor), std::to_string(wait.waits_for),
                   std::to_string(to_int(wait.of))});
  }
  std::string out = table.text(width);
  if (finding.cycle.size() > kShown)
    out += fmt::format("and {} more\n", finding.cycle.size() - kShown);
  return out;
}

std::string replay_json(const ReplayReport& report) {
  Json out = {{"schema", "reshard.replay/1"},
              {"trace", report.trace},
              {"topology", report.topology},
              {"operations", report.operations},
              {"transport", report.transport},
              {"time_ps", report.time_ps},
              {"ideal_time_ps", report.ideal_time_ps},
              {"bytes_received_total", report.bytes_received_total},
              {"bound",
               {{"path_ps", report.path_bound_ps},
                {"cut_ps", report.cut_bound_ps},
                {"time_ps", report.bound_ps},
                {"limited_by", report.limited_by()}}},
              {"ratio_to_bound", decimal_json(ratio_e4(report.time_ps, report.bound_ps))},
              {"proof", true},  // unproved plans are never reported
              {"data",
               {{"checked", report.data_checked == report.different_requests},
                {"requests_different", report.different_requests},
                {"requests_checked", report.data_checked},
                {"requests_full_size", report.data_full_size},
                {"elements", report.elements_checked},
                {"budget_bytes", report.data_budget_bytes}}},
              {"requests", rows_json(report.requests)},
              {"others", rows_json(report.others)},
              {"links", links_json(report.links, report.time_ps, 1'000'000)},
              {"bytes_by_class", classes_json(report.classes)},
              {"late", late_json(report)},
              {"faults", faults_json(report)},
              {"order", reordered_json(report)},
              {"communicators", communicators_json(report.communicators, report.cold)},
              {"default_hang", default_hang_json(report.default_hang)},
              {"plan_cache", report.cache ? cache_json(*report.cache) : Json(nullptr)},
              {"digest", report.digest.hex()}};
  if (report.job) {
    out["peak_bytes_max"] = report.peak_bytes_max;
    add_job(*report.job, report.time_ps, out);
  }
  if (report.together) out["together"] = together_json(*report.together);
  auto operation = [&](const PathFacts::PathSpan& part) -> Json {
    // Setups that a policy adds have no line.
    std::size_t op = to_index(part.op);
    return {{"line", op < report.lines.size() ? Json(report.lines[op]) : Json(nullptr)},
            {"operation", report.labels[op]}};
  };
  add_path(report.path, operation, out);
  add_phases(report.phases, out);
  if (report.dispatch) add_dispatch(*report.dispatch, out);
  return written(out);
}

std::string replay_table(const ReplayReport& report, bool verbose, std::size_t width) {
  Facts head, facts;
  head.add("trace", fmt::format("{}: {}, {} of them redistributions", report.trace,
                                counted(report.operations, "operation"), report.requests.size()));
  head.add("topology", report.topology);
  facts.add("received",
            bytes_text(report.bytes_received_total) + " from other ranks, padding included");
  if (report.job)
    facts.add("peak memory", bytes_text(report.peak_bytes_max) +
                                 " on the fullest rank, during one redistribution");
  add_classes(report.classes, true, facts);
  facts.add("proof", proof_text(report));
  facts.add("data checked", data_text(report));
  facts.add("time", duration_text(report.time_ps));
  add_transport(report.transport, report.time_ps, report.ideal_time_ps, facts);
  facts.add("bound",
            fmt::format("{} (longest path {}, cut {}; limited by {})",
                        duration_text(report.bound_ps), duration_text(report.path_bound_ps),
                        duration_text(report.cut_bound_ps), report.limited_by()));
  facts.add("ratio to bound", ratio_of(report.time_ps, report.bound_ps));
  if (report.job && report.job->full)
    facts.add("fullest links", full_links_text(*report.job->full, report.time_ps));
  for (const auto& [name, text] :
       {std::pair("faults", faults_text(report)), std::pair("late", late_text(report)),
        std::pair(report.together && report.together->joined ? "joined" : "could be one",
                  together_text(report))})
    if (!text.empty()) facts.add(name, text);
  if (std::string warning = warning_text(report); !warning.empty()) facts.add("warning", warning);
  if (verbose) add_path(report.path, facts);
  add_cache(report.cache, facts);
  add_phases(report.phases, facts);
  facts.add("digest", report.digest.hex());
  return head.text(width) + jobs_table(report, width) +
         (report.job ? groups_table(report.job->kinds, "kind", verbose, width) : "") +
         kinds_table(report.requests, width) + stage_tables(report, verbose, width) + "\n" +
         facts.text(width) + communicators_table(report, width) + delayed_table(report, width) +
         swaps_table(report, width) + link_table(report.links, report.time_ps, 1'000'000, width) +
         (report.dispatch ? dispatch_tables(*report.dispatch, verbose, width) : "") +
         (verbose ? path_tables(report, width) + rows_table(report, width) : "");
}

}  // namespace reshard::sim
