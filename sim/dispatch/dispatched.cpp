// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/dispatched.h"

#include <algorithm>

#include <fmt/format.h>

namespace reshard::sim {

std::optional<Request> request_of(const TensorSpec& from, const OpPlacements& to,
                                  const MeshRef& mesh) {
  std::vector<Placement> source, target;
  bool carries = false;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    const OpPlacement& wanted = to[axis];
    source.push_back(from.placements[axis].carried());
    target.push_back(wanted.kind == OpPlacement::Kind::MaskPartial &&
                             wanted != from.placements[axis]
                         ? Placement::replicate()
                         : wanted.carried());
    carries =
        carries || (source.back() != target.back() && mesh->axis_size(static_cast<int>(axis)) > 1);
  }
  if (!carries) return std::nullopt;
  return Request(Layout(from.meta.shape, from.meta.dtype, mesh, std::move(source)),
                 Layout(from.meta.shape, from.meta.dtype, mesh, std::move(target)));
}

const char* collective_of(const OpStep& step, std::span<const std::int32_t> sizes) {
  if (sizes[to_index(step.axis)] == 1 || step.from.is_replicate()) return nullptr;
  if (step.from.is_shard_like()) {
    if (step.to.is_partial()) return nullptr;
    return step.to.is_replicate() ? "all_gather" : "all_to_all";
  }
  if (step.to.is_partial()) return nullptr;
  return step.to.is_replicate() ? "all_reduce" : "reduce_scatter";
}

namespace {

std::string why(const DispatchedCall& torch, const DispatchedCall& best) {
  std::vector<std::string> reasons;
  if (torch.in != best.in) reasons.emplace_back("its inputs arrive in other placements");
  if (torch.decision.wanted != best.decision.wanted)
    reasons.push_back(fmt::format("takes {} instead of {}", text(best.decision.wanted),
                                  text(torch.decision.wanted)));
  auto again = std::count_if(best.moves.begin(), best.moves.end(),
                             [](const DispatchedMove& move) { return move.again; });
  if (again > 0) reasons.emplace_back("reuses a copy that was moved before");
  bool from_copy = std::any_of(best.moves.begin(), best.moves.end(), [&](const auto& move) {
    return best.in[to_index(move.input)] && move.from != best.in[to_index(move.input)]->placements;
  });
  if (from_copy) reasons.emplace_back("starts from a copy that was moved before");
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

Moved& Moved::operator+=(const Moved& more) {
  count += more.count;
  time_ps += more.time_ps;
  bytes += more.bytes;
  return *this;
}

Moved moved_by(const DispatchedCall& call) {
  Moved out;
  for (const DispatchedMove& move : call.moves)
    if (!move.again && move.figures) out += {1, move.figures->time_ps, move.figures->bytes};
  return out;
}

Regret regret_of(const std::vector<DispatchedCall>& torch,
                 const std::vector<DispatchedCall>& best) {
  Regret out;
  for (std::size_t i = 0; i < torch.size(); ++i) {
    RegretRow row{torch[i].line,     torch[i].op ? torch[i].op->name : "redistribute",
                  torch[i].module,   moved_by(torch[i]),
                  moved_by(best[i]), {}};
    out.torch += row.torch;
    out.best += row.best;
    if (torch[i].op) {
      out.torch_implicit += row.torch;
      out.best_implicit += row.best;
    }
    if (row.torch.time_ps == row.best.time_ps && row.torch.bytes == row.best.bytes) continue;
    row.why = why(torch[i], best[i]);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace reshard::sim
