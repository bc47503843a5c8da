// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/dispatch_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "sim/dispatch/moves.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kPasses[]{"forward", "backward", "optimizer"};

Json cost_json(double cost_us) { return std::isinf(cost_us) ? Json(nullptr) : Json(cost_us); }

Json texts_json(const std::vector<std::optional<OpPlacements>>& list) {
  return list_json(list, [](const auto& placements) {
    return placements ? Json(text(*placements)) : Json(nullptr);
  });
}

Json specs_json(const std::vector<std::optional<TensorSpec>>& list) {
  return list_json(
      list, [](const auto& spec) { return spec ? Json(text(spec->placements)) : Json(nullptr); });
}

Json move_json(const DispatchedMove& move) {
  return {{"input", move.input},
          {"from", text(move.from)},
          {"to", text(move.to)},
          {"steps", list_json(move.steps, [](const OpStep& step) { return Json(text(step)); })},
          {"cost_us", cost_json(move.cost_us)},
          {"again", move.again}};
}

Json call_json(const DispatchedCall& call) {
  const Decision& decision = call.decision;
  Json out = {{"id", or_null(call.id)},
              {"line", call.line},
              {"call", call.said->call},
              {"module", or_null(call.module)},
              {"pass", call.pass},
              {"in", specs_json(call.in)},
              {"chosen", texts_json(decision.wanted)},
              {"out", specs_json(decision.outputs)},
              {"cost_us", cost_json(decision.cost_us)},
              {"candidates", decision.candidates},
              {"ties", decision.ties},
              {"implicit", list_json(call.moves, move_json)},
              {"hit", call.hit}};
  out["runner_up"] = decision.runner_up_us ? Json{{"in", texts_json(decision.runner_up)},
                                                  {"cost_us", cost_json(*decision.runner_up_us)}}
                                           : Json(nullptr);
  out["corrected"] = or_null(decision.corrected);
  return out;
}

Json redistribution_json(const DispatchedCall& call) {
  Json out = move_json(call.moves.front());
  out.erase("input");
  out["id"] = or_null(call.id);
  out["line"] = call.line;
  out["module"] = or_null(call.module);
  out["pass"] = call.pass;
  return out;
}

std::string steps_text(const DispatchedMove& move) {
  std::string out = text(move.from);
  OpPlacements now = move.from;
  for (const OpStep& step : move.steps) {
    now[to_index(step.axis)] = step.to;
    out += "->" + text(now);
  }
  return out;
}

std::string counts_text(const CollectiveCounts& counts) {
  std::string out;
  for (const auto& [kind, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, kind);
  return out.empty() ? "none" : out;
}

// As DebugMode writes a call: its inputs, what it redistributes, its outputs.
std::string call_text(const DispatchedCall& call) {
  auto spec_text = [](const std::optional<TensorSpec>& spec) {
    return spec ? text(*spec) : std::string("None");
  };
  std::vector<std::string> in, out;
  for (const auto& spec : call.in) in.push_back(spec_text(spec));
  for (const auto& spec : call.decision.outputs)
    out.push_back(spec ? text(spec->placements) : "None");
  std::string kind = call.op ? "implicit" : "explicit", text;
  if (call.op)
    text = fmt::format("{}: aten::{}({}) -> {}\n", call.line, call.op->name, fmt::join(in, ", "),
                       fmt::join(out, ", "));
  for (const DispatchedMove& move : call.moves)
    text += fmt::format("{}redistribute_input [{}] ({}, trace: {}){}\n",
                        call.op ? "    " : fmt::format("{}: ", call.line), kind, move.input,
                        steps_text(move), move.again ? " once more" : "");
  return text;
}

}  // namespace

void add_dispatch(const DispatchReport& report, Json& out) {
  Json calls = Json::array(), redistributions = Json::array();
  for (const DispatchedCall& call : report.calls) {
    if (call.op) calls.push_back(call_json(call));
    if (!call.op) redistributions.push_back(redistribution_json(call));
  }
  out["calls"] = std::move(calls);
  out["redistributions"] = std::move(redistributions);
  out["dispatch"] = {{"mode", text(report.mode)},         {"hits", report.cache.hits},
                     {"misses", report.cache.misses},     {"entries", report.cache.entries},
                     {"capacity", report.cache.capacity}, {"evictions", report.cache.evictions}};
  out["values"] = {{"calls", report.calls_computed}, {"elements", report.elements_compared}};
  Json counts;
  for (std::string_view pass : kPasses) {
    counts[std::string(pass)] = Json::object();
    auto at = report.collectives.find(pass);
    if (at == report.collectives.end()) continue;
    for (const auto& [kind, count] : at->second)
      counts[std::string(pass)][std::string(kind)] = count;
  }
  out["collectives"] = std::move(counts);
}

std::string dispatch_tables(const DispatchReport& report, bool verbose, std::size_t width) {
  struct Row {
    std::int64_t calls = 0, implicit = 0, explicit_ones = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const DispatchedCall& call : report.calls) {
    Row& row = rows[{call.module, call.op ? call.op->name : "redistribute"}];
    if (call.op) ++row.calls;
    for (const DispatchedMove& move : call.moves)
      if (!move.again) ++(call.op ? row.implicit : row.explicit_ones);
  }
  Table table({"module", "operator", ">calls", ">implicit", ">explicit"});
  for (const auto& [key, row] : rows)
    table.add_row({key.first, key.second, std::to_string(row.calls), std::to_string(row.implicit),
                   std::to_string(row.explicit_ones)});
  std::string out = fmt::format("\n{}", table.text(width));
  const DecisionCacheStatistics& cache = report.cache;
  out += fmt::format("\ndecisions        {} by {}: {} hits, {} misses, {} of {} kept, {} dropped\n",
                     cache.hits + cache.misses, text(report.mode), cache.hits, cache.misses,
                     cache.entries, cache.capacity, cache.evictions);
  if (report.calls_computed > 0)
    out += fmt::format(
        "values           {} calls computed on every rank, {} elements as of whole "
        "tensors\n",
        report.calls_computed, report.elements_compared);
  for (std::string_view pass : kPasses)
    if (auto at = report.collectives.find(pass); at != report.collectives.end())
      out += fmt::format("{:<16} {}\n", pass, counts_text(at->second));
  if (!verbose) return out;
  out += "\n";
  for (const DispatchedCall& call : report.calls) out += call_text(call);
  return out;
}

}  // namespace reshard::sim
