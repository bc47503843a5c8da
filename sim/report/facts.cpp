// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/facts.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/units.h"
#include "sim/dispatch/dispatched.h"
#include "sim/report/ratios.h"
#include "sim/report/time_tables.h"

namespace reshard::sim {

std::string ratio_of(std::int64_t time_ps, std::int64_t to_ps) {
  return ratio_text(ratio_e4(time_ps, to_ps));
}

void add_cache(const std::optional<CacheStatistics>& cache, Facts& facts) {
  if (cache)
    facts.add("plan cache",
              fmt::format("{}, {} missed, {} of {} entries", counted(cache->hits, "hit"),
                          cache->misses, cache->size, cache->capacity));
}

void add_classes(const std::vector<ClassUse>& classes, bool with_flows, Facts& facts) {
  std::string out = joined(classes, ", ", [&](const ClassUse& use) {
    std::string out = fmt::format("{} {}", text(use.transport), bytes_text(use.bytes));
    return with_flows ? fmt::format("{} in {} flows", out, use.flows) : out;
  });
  if (!out.empty()) facts.add("by link class", out);
}

void add_path(const std::optional<PathFacts>& path, Facts& facts) {
  if (path && !path_sentence(*path).empty()) facts.add("critical path", path_sentence(*path));
}

void add_phases(const std::vector<PhaseTime>& phases, Facts& facts) {
  if (!phases.empty()) facts.add("phases", text(phases));
}

void add_transport(std::string_view transport, std::int64_t time_ps, std::int64_t ideal_time_ps,
                   Facts& facts) {
  if (transport == text(TransportKind::Ideal) || time_ps == 0) return;
  std::int64_t more_ps = time_ps - ideal_time_ps;
  // The difference can be negative: a transport can choose algorithms that `ideal` does not have.
  facts.add("transport",
            fmt::format("{}: {} {} than links alone ({}{})", transport,
                        duration_text(more_ps < 0 ? -more_ps : more_ps),
                        more_ps < 0 ? "less" : "more", duration_text(ideal_time_ps),
                        more_ps < 0 ? ", where collectives are rings, no switch reduces, and all "
                                      "messages of a step start at once"
                                    : ""));
}

std::string full_links_text(const FullLinks& full, std::int64_t time_ps) {
  return fmt::format("{} of {} {}, within 1 % of {}: {} % used", full.full, full.used, full.kind,
                     full.fullest.name,
                     decimal_text(utilisation(full.fullest, time_ps, 10'000), 100, 1));
}

std::string proof_text(const ReplayReport& report) {
  if (report.requests.empty()) return "no redistributions";
  auto count = static_cast<std::int64_t>(report.requests.size());
  return fmt::format("{}, at full size, from index sets", counted(count, "redistribution"));
}

std::string data_text(const ReplayReport& report) {
  if (report.data_checked == 0)
    return report.requests.empty() ? "no redistributions" : "no bytes moved (--data proof)";
  std::string full = "all at full size";
  if (report.data_full_size < report.data_checked)
    full = fmt::format("{} at full size and {} (above the data budget) at a reduced size",
                       report.data_full_size, report.data_checked - report.data_full_size);
  return fmt::format("{} of {} different requests, {}, {} elements compared", report.data_checked,
                     report.different_requests, full, report.elements_checked);
}

std::string faults_text(const ReplayReport& report) {
  if (!report.fault_cost) return {};
  constexpr std::size_t kShown = 4;
  std::int64_t without = report.fault_cost->without_ps, cost = report.time_ps - without;
  std::string out =
      fmt::format("{} {} than without faults ({})", duration_text(cost < 0 ? -cost : cost),
                  cost < 0 ? "less" : "more", duration_text(without));
  std::size_t shown = 0;
  for (const Grown& grown : report.fault_cost->grown) {
    if (shown == kShown) break;
    out += fmt::format("{}line {} ({} longer)", shown == 0 ? "; most of it at " : ", ",
                       report.lines[to_index(grown.op)], duration_text(grown.ps));
    ++shown;
  }
  return out;
}

std::string late_text(const ReplayReport& report) {
  if (report.late.empty()) return {};
  const LateArrival& late = report.late.front();
  std::string more =
      report.late.size() == 1 ? "" : fmt::format(" (and {} more)", report.late.size() - 1);
  return fmt::format("rank {}, {} after all others at line {}; together they waited {}{}",
                     to_int(late.rank), duration_text(late.late_ps),
                     report.lines[to_index(late.op)], duration_text(late.waited_ps), more);
}

std::string together_text(const ReplayReport& report) {
  if (!report.together) return {};
  constexpr std::size_t kShown = 4;
  const Together& together = *report.together;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, together.sets.size()); ++i)
    out += fmt::format("{}lines {}", i == 0 ? "" : "; ", together.sets[i].lines);
  if (together.sets.size() > kShown)
    out += fmt::format("; and {} more sets", together.sets.size() - kShown);
  if (together.joined) return out;
  return fmt::format("{}: {} instead of {}", out, duration_text(together.time_ps),
                     duration_text(report.time_ps));
}

std::vector<Delayed> delayed_by_gain(const ReplayReport& report) {
  if (!report.reordered) return {};
  std::vector<Delayed> list = report.reordered->delayed;
  std::stable_sort(list.begin(), list.end(),
                   [](const Delayed& a, const Delayed& b) { return a.gain_ps > b.gain_ps; });
  std::erase_if(list, [](const Delayed& pair) { return pair.gain_ps <= 0; });
  return list;
}

std::vector<RequestKind> kinds_of(const std::vector<ReplayRow>& rows) {
  std::vector<RequestKind> kinds;
  std::map<std::pair<std::string, std::string>, std::size_t> index;
  for (const ReplayRow& row : rows) {
    auto [at, added] = index.try_emplace({row.text, row.planner}, kinds.size());
    if (added) kinds.push_back({&row});
    RequestKind& kind = kinds[at->second];
    ++kind.count;
    kind.bytes += row.bytes_received;
    if (row.start_ps && row.end_ps) kind.time_ps += *row.end_ps - *row.start_ps;
  }
  return kinds;
}

namespace {

std::string name_of(const DispatchedCall& call) { return call.op ? call.op->name : "redistribute"; }

std::int64_t bound_of(const DispatchedCall& call) {
  std::int64_t out = 0;
  for (const DispatchedMove& move : call.moves)
    if (!move.again && move.figures) out += move.figures->bound_ps;
  return out;
}

std::string steps_of(const DispatchedMove& move, const Mesh& mesh) {
  std::string out;
  for (const OpStep& step : move.steps) {
    const char* kind = collective_of(step, mesh.shape());
    if (!kind) continue;
    std::string axis =
        mesh.names().empty() ? fmt::format("axis {}", step.axis) : mesh.names()[step.axis];
    out += fmt::format("{}{} on {}", out.empty() ? "" : ", ", kind, axis);
  }
  return out.empty() ? "each rank alone" : out;
}

}  // namespace

OperatorFacts& OperatorFacts::operator+=(const OperatorFacts& more) {
  calls += more.calls;
  implicit += more.implicit;
  explicit_ones += more.explicit_ones;
  compute_ps += more.compute_ps;
  moved += more.moved;
  bound_ps += more.bound_ps;
  return *this;
}

std::vector<OperatorFacts> operator_facts(const DispatchReport& report) {
  std::map<std::pair<std::string, std::string>, OperatorFacts> rows;
  for (const DispatchedCall& call : report.calls) {
    OperatorFacts& row = rows[{call.module, name_of(call)}];
    if (call.op) ++row.calls;
    row.compute_ps += call.duration_ps;
    row.moved += moved_by(call);
    row.bound_ps += bound_of(call);
    for (const DispatchedMove& move : call.moves)
      if (!move.again) ++(call.op ? row.implicit : row.explicit_ones);
  }
  std::vector<OperatorFacts> out;
  for (auto& [key, row] : rows) {
    std::tie(row.module, row.op) = key;
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<FaultFacts> fault_facts(const DispatchReport& report) {
  std::vector<FaultFacts> out;
  for (const DispatchedCall& call : report.calls) {
    const std::string_view what = call.decision.corrected;
    if (what.empty()) continue;
    auto at = std::find_if(out.begin(), out.end(), [&](const FaultFacts& known) {
      return known.op == call.op->name && known.what == what;
    });
    if (at == out.end()) at = out.insert(at, {call.op->name, what, {}});
    at->lines.push_back(call.line);
  }
  return out;
}

std::string lines_text(const std::vector<std::int64_t>& lines) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(kShown, lines.size());
  std::string out = fmt::format(
      "{} {}", lines.size() == 1 ? "line" : "lines",
      fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (lines.size() > shown) out += fmt::format(" and {} more", lines.size() - shown);
  return out;
}

std::vector<TakenAsRecorded> recorded_facts(const DispatchReport& report) {
  return report.recorded;
}

std::vector<CollectiveFacts> collective_facts(const DispatchReport& report) {
  std::vector<CollectiveFacts> out;
  for (std::string_view pass : {"forward", "backward", "optimizer"})
    for (const DispatchedCall& call : report.calls) {
      if (pass_key(call.pass) != pass) continue;
      for (const DispatchedMove& move : call.moves) {
        if (move.again || !move.figures) continue;
        std::string steps = steps_of(move, *call.op_line->mesh);
        auto row = std::find_if(out.begin(), out.end(), [&](const CollectiveFacts& known) {
          return known.pass == pass && known.steps == steps && known.cause == name_of(call);
        });
        if (row == out.end())
          row = out.insert(out.end(), {std::string(pass), steps, name_of(call), {}, 0});
        row->moved += {1, move.figures->time_ps, move.figures->bytes};
        row->bound_ps += move.figures->bound_ps;
      }
    }
  return out;
}

}  // namespace reshard::sim
