// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/dispatch_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/dispatch/moves.h"

namespace reshard::sim {
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

std::vector<CollectiveFacts> collective_facts(const DispatchReport& report) {
  std::vector<CollectiveFacts> out;
  for (std::string_view pass : {"forward", "backward", "optimizer"})
    for (const DispatchedCall& call : report.calls) {
      if (pass_key(call.pass) != pass) continue;
      for (const DispatchedMove& move : call.moves) {
        if (move.again || !move.figures) continue;
        std::string steps = steps_of(move, *call.said->mesh);
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
