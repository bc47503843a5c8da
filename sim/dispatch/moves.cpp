// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/moves.h"

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

}  // namespace reshard::sim
