// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/writers/dispatch_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/units.h"
#include "sim/report/facts.h"
#include "sim/report/table.h"

namespace reshard::sim {
namespace {

constexpr std::string_view kPasses[]{"forward", "backward", "optimizer"};

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
          {"again", move.again},
          {"bytes", move.figures ? Json(move.figures->bytes) : Json(nullptr)},
          {"time_ps", move.figures ? Json(move.figures->time_ps) : Json(nullptr)},
          {"bound_ps", move.figures ? Json(move.figures->bound_ps) : Json(nullptr)}};
}

Json call_json(const DispatchedCall& call) {
  const Decision& decision = call.decision;
  Json out = {{"id", or_null(call.id)},
              {"line", call.line},
              {"call", call.op_line->call},
              {"module", or_null(call.module)},
              {"pass", call.pass},
              {"in", specs_json(call.in)},
              {"chosen", placements_json(decision.wanted)},
              {"out", specs_json(decision.outputs)},
              {"cost_us", cost_json(decision.cost_us)},
              {"candidates", decision.candidates},
              {"ties", decision.ties},
              {"implicit", list_json(call.moves, move_json)},
              {"hit", call.hit}};
  out["runner_up"] = decision.runner_up_us ? Json{{"in", placements_json(decision.runner_up)},
                                                  {"cost_us", cost_json(*decision.runner_up_us)}}
                                           : Json(nullptr);
  out["corrected"] = or_null(decision.corrected);
  out["recorded"] = or_null(call.recorded);
  out["duration_ps"] = call.duration_ps;
  out["duration"] = text(call.duration_of);
  out["random_offsets"] = call.random_starts.empty() ? Json(nullptr) : Json(call.random_starts);
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

Json counts_json(const std::map<std::string_view, CollectiveCounts>& by_pass) {
  Json out;
  for (std::string_view pass : kPasses) {
    Json& counts = out[std::string(pass)] = Json::object();
    if (auto at = by_pass.find(pass); at != by_pass.end())
      for (const auto& [kind, count] : at->second) counts[std::string(kind)] = count;
  }
  return out;
}

Json moved_json(const Moved& moved) {
  return {{"count", moved.count}, {"bytes", moved.bytes}, {"time_ps", moved.time_ps}};
}

Json operator_json(const OperatorFacts& row) {
  return {{"module", or_null(row.module)},
          {"call", row.op},
          {"calls", row.calls},
          {"implicit", row.implicit},
          {"explicit", row.explicit_ones},
          {"compute_ps", row.compute_ps},
          {"bytes", row.moved.bytes},
          {"time_ps", row.moved.time_ps},
          {"bound_ps", row.bound_ps}};
}

Json collective_json(const CollectiveFacts& row) {
  return {{"pass", row.pass},         {"steps", row.steps},       {"cause", row.cause},
          {"count", row.moved.count}, {"bytes", row.moved.bytes}, {"time_ps", row.moved.time_ps},
          {"bound_ps", row.bound_ps}};
}

Json lost_write_json(const LostWrite& lost) {
  return {{"line", lost.line},           {"call", lost.call},
          {"into", lost.into},           {"copied_line", lost.copied_line},
          {"copied_by", lost.copied_by}, {"of", lost.of},
          {"from", text(lost.from)},     {"to", text(lost.to)}};
}

Json regret_json(const Regret& regret) {
  return {{"torch", moved_json(regret.torch)},
          {"best", moved_json(regret.best)},
          {"torch_implicit", moved_json(regret.torch_implicit)},
          {"best_implicit", moved_json(regret.best_implicit)},
          {"calls", list_json(regret.rows, [](const RegretRow& row) -> Json {
             return {{"line", row.line},
                     {"call", row.call},
                     {"module", or_null(row.module)},
                     {"torch", moved_json(row.torch)},
                     {"best", moved_json(row.best)},
                     {"why", row.why}};
           })}};
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

// A call as DebugMode prints it: its inputs, its redistributions, its outputs.
std::string call_text(const DispatchedCall& call) {
  auto spec_text = [&](const std::optional<TensorSpec>& spec) {
    if (!spec) return std::string("None");
    return call.sized ? text(*spec) : text(spec->placements);
  };
  std::vector<std::string> in, out;
  for (const auto& spec : call.in) in.push_back(spec_text(spec));
  for (const auto& spec : call.decision.outputs)
    out.push_back(spec ? text(spec->placements) : "None");
  std::string kind = call.op ? "implicit" : "explicit", text;
  if (call.op)
    text = fmt::format("{}: aten::{}({}) -> {}{}\n", call.line, call.op->name, fmt::join(in, ", "),
                       fmt::join(out, ", "), call.recorded.empty() ? "" : " as recorded");
  for (const DispatchedMove& move : call.moves)
    text += fmt::format("{}redistribute_input [{}] ({}, trace: {}){}\n",
                        call.op ? "    " : fmt::format("{}: ", call.line), kind, move.input,
                        steps_text(move), move.again ? " again" : "");
  if (!call.decision.corrected.empty()) text += fmt::format("    {}\n", call.decision.corrected);
  return text;
}

// One row per module; if `verbose`, one per operator of each module.
std::string operators_table(const DispatchReport& report, bool verbose, std::size_t width) {
  std::vector<OperatorFacts> rows;
  for (OperatorFacts& row : operator_facts(report)) {
    if (!verbose) row.op.clear();
    if (rows.empty() || rows.back().module != row.module || rows.back().op != row.op) {
      rows.push_back(std::move(row));
    } else {
      rows.back() += row;
    }
  }
  Table table({"module", verbose ? "operator" : "", ">calls", ">impl.", ">expl.", ">compute",
               ">received", ">alone"});
  for (const OperatorFacts& row : rows)
    table.add_row({row.module, row.op, std::to_string(row.calls), std::to_string(row.implicit),
                   std::to_string(row.explicit_ones), duration_text(row.compute_ps),
                   bytes_text(row.moved.bytes), duration_text(row.moved.time_ps)});
  return table.rows() == 0 ? std::string() : fmt::format("\n{}", table.text(width));
}

std::string collectives_table(const DispatchReport& report, std::size_t width) {
  Table table({"pass", "moved by", "for", ">count", ">received", ">alone", ">bound"});
  for (const CollectiveFacts& row : collective_facts(report))
    table.add_row({row.pass, row.steps, row.cause, std::to_string(row.moved.count),
                   bytes_text(row.moved.bytes), duration_text(row.moved.time_ps),
                   duration_text(row.bound_ps)});
  return table.rows() == 0 ? std::string() : fmt::format("\n{}", table.text(width));
}

// Calls for which PyTorch itself would give a different result.
std::string faults_table(const DispatchReport& report, std::size_t width) {
  Table table({"at", "call", "PyTorch's defect"});
  for (const FaultFacts& fault : fault_facts(report))
    table.add_row({lines_text(fault.lines), fault.op, std::string(fault.what)});
  return table.rows() == 0 ? std::string() : fmt::format("\n{}", table.text(width));
}

std::string recorded_table(const DispatchReport& report, std::size_t width) {
  Table table({"taken as recorded", ">calls", ">first line", "why"});
  for (const TakenAsRecorded& row : report.recorded)
    table.add_row({row.call, std::to_string(row.count), std::to_string(row.line), row.why});
  return table.rows() == 0 ? std::string() : fmt::format("\n{}", table.text(width));
}

std::string durations_text(const DispatchReport& report) {
  std::map<DurationOf, std::int64_t> counts;
  for (const DispatchedCall& call : report.calls)
    if (call.op) ++counts[call.duration_of];
  std::string out;
  for (const auto& [from, count] : counts)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, text(from));
  return out;
}

std::string facts_text(const DispatchReport& report, std::size_t width) {
  Facts facts;
  const DecisionCacheStatistics& cache = report.cache;
  if (!report.calls.empty()) {
    facts.add("decisions",
              fmt::format("{} by {}: {} hits, {} misses, {} of {} kept, {} dropped",
                          cache.hits + cache.misses, text(report.mode), cache.hits, cache.misses,
                          cache.entries, cache.capacity, cache.evictions));
    if (report.priced_as != PricedAs::Topology)
      facts.add("priced",
                fmt::format("with {} per host, {}", counted(report.devices_per_host, "device"),
                            report.priced_as == PricedAs::Recorded
                                ? "as recorded"
                                : "which meets more of the expectations"));
    facts.add("durations", durations_text(report));
  }
  if (report.calls_computed > 0) {
    std::string cancelled =
        report.elements_cancelled == 0
            ? ""
            : fmt::format(", except {} that are infinite there but NaN as sums of infinite addends",
                          report.elements_cancelled);
    facts.add("values",
              fmt::format(
                  "{} calls computed on every rank, {} elements equal to those of whole tensors{}",
                  report.calls_computed, report.elements_compared, cancelled));
  }
  if (report.calls_left_out > 0) {
    facts.add("values", fmt::format("left out for {} calls: {}", report.calls_left_out,
                                    report.values_left_out));
  } else if (!report.values_left_out.empty()) {
    facts.add("values", "left out: " + report.values_left_out);
  }
  for (const LostWrite& lost : report.sharing.lost)
    facts.add("lost write", fmt::format("line {}: {}; nothing reads it", lost.line, text(lost)));
  for (std::string_view pass : kPasses) {
    if (auto at = report.collectives.find(pass); at != report.collectives.end())
      facts.add(std::string(pass), counts_text(at->second));
    if (auto at = report.issued.find(pass); at != report.issued.end())
      facts.add(fmt::format("{} (own)", pass), counts_text(at->second));
  }
  return facts.text(width);
}

std::string regret_table(const Regret& regret, std::size_t width) {
  Facts facts;
  auto moved = [](const Moved& one) {
    return fmt::format("{} moves, {}, {}", one.count, bytes_text(one.bytes),
                       duration_text(one.time_ps));
  };
  facts.add("as PyTorch", moved(regret.torch));
  facts.add("best", moved(regret.best));
  facts.add("implicit", fmt::format("{} instead of {}", bytes_text(regret.best_implicit.bytes),
                                    bytes_text(regret.torch_implicit.bytes)));
  std::string out = fmt::format("\n{}", facts.text(width));
  constexpr std::size_t kShown = 10;
  std::vector<const RegretRow*> rows;
  for (const RegretRow& row : regret.rows) rows.push_back(&row);
  auto regret_ps = [](const RegretRow& row) { return row.torch.time_ps - row.best.time_ps; };
  std::stable_sort(rows.begin(), rows.end(), [&](const RegretRow* a, const RegretRow* b) {
    return regret_ps(*a) > regret_ps(*b);
  });
  Table table({">line", "regret of", "module", ">torch", ">best", "why"});
  for (std::size_t i = 0; i < std::min(kShown, rows.size()); ++i)
    table.add_row({std::to_string(rows[i]->line), rows[i]->call, rows[i]->module,
                   duration_text(rows[i]->torch.time_ps), duration_text(rows[i]->best.time_ps),
                   rows[i]->why});
  return rows.empty() ? out : out + fmt::format("\n{}", table.text(width));
}

}  // namespace

Json cost_json(double cost_us) { return std::isinf(cost_us) ? Json(nullptr) : Json(cost_us); }

Json placements_json(const PlacedTensors& tensors) {
  return list_json(tensors, [](const auto& placements) {
    return placements ? Json(text(*placements)) : Json(nullptr);
  });
}

void add_dispatch(const DispatchReport& report, Json& out) {
  Json calls = Json::array(), redistributions = Json::array();
  for (const DispatchedCall& call : report.calls) {
    if (call.op) calls.push_back(call_json(call));
    if (!call.op) redistributions.push_back(redistribution_json(call));
  }
  out["calls"] = std::move(calls);
  out["redistributions"] = std::move(redistributions);
  out["dispatch"] = {{"mode", text(report.mode)},
                     {"hits", report.cache.hits},
                     {"misses", report.cache.misses},
                     {"entries", report.cache.entries},
                     {"capacity", report.cache.capacity},
                     {"evictions", report.cache.evictions},
                     {"devices_per_host", report.devices_per_host},
                     {"priced_as", text(report.priced_as)}};
  out["values"] = {{"calls", report.calls_computed},
                   {"elements", report.elements_compared},
                   {"cancelled", report.elements_cancelled},
                   {"left_out", or_null(report.values_left_out)},
                   {"calls_left_out", report.calls_left_out}};
  out["lost_writes"] = list_json(report.sharing.lost, lost_write_json);
  out["taken_as_recorded"] = list_json(report.recorded, [](const TakenAsRecorded& row) -> Json {
    return {{"call", row.call}, {"count", row.count}, {"line", row.line}, {"why", row.why}};
  });
  out["collectives"] = counts_json(report.collectives);
  out["collectives_issued"] = counts_json(report.issued);
  out["operators"] = list_json(operator_facts(report), operator_json);
  out["moves"] = list_json(collective_facts(report), collective_json);
  out["regret"] = report.regret ? regret_json(*report.regret) : Json(nullptr);
}

std::string dispatch_tables(const DispatchReport& report, bool verbose, std::size_t width) {
  std::string out = operators_table(report, verbose, width) + collectives_table(report, width) +
                    faults_table(report, width) + recorded_table(report, width);
  out += fmt::format("\n{}", facts_text(report, width));
  if (report.regret) out += regret_table(*report.regret, width);
  if (!verbose) return out;
  out += "\n";
  for (const DispatchedCall& call : report.calls) out += call_text(call);
  return out;
}

}  // namespace reshard::sim
