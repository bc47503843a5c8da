// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/stack_rule.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

// A shard wins over a partial and both over a replica; two that differ become replicas.
OpPlacement common(const OpPlacement& a, const OpPlacement& b) {
  if (a == b || b.is_replicate()) return a;
  if (a.is_replicate() || (a.is_partial() && b.is_shard_like())) return b;
  return a.is_shard_like() && b.is_partial() ? a : OpPlacement::replicate();
}

}  // namespace

Decision decide_stack(const OpCall& call, std::span<const std::int32_t>, const MoveCost& cost) {
  const std::vector<const TensorSpec*>& tensors = call.arguments[0].tensors;
  const TensorSpec& first = *tensors[0];
  OpPlacements follow = first.placements;
  for (const TensorSpec* tensor : tensors) {
    if (tensor->meta.shape != first.meta.shape)
      throw InputError(fmt::format("stack: [{}] and [{}] differ", text(first.meta.shape),
                                   text(tensor->meta.shape)));
    for (std::size_t axis = 0; axis < follow.size(); ++axis)
      follow[axis] = common(follow[axis], tensor->placements[axis]);
  }
  int dims = first.meta.shape.size() + 1;
  std::int64_t dim = call.attributes.integer("dim", 0);
  if (dim < 0) dim += dims;
  if (dim < 0 || dim >= dims || dims > kMaxDims)
    throw InputError(fmt::format("attr dim: {} is out of range for {} dims",
                                 call.attributes.integer("dim", 0), dims));
  Decision out;
  TensorSpec output{{{}, first.meta.dtype}, follow, first.of_view};
  for (int d = 0; d < dims; ++d)
    output.meta.shape.push_back(d == dim ? static_cast<std::int64_t>(tensors.size())
                                         : first.meta.shape[d < dim ? d : d - 1]);
  for (OpPlacement& placement : output.placements)
    if (placement.is_shard_like() && placement.dim >= dim) ++placement.dim;
  for (const TensorSpec* tensor : tensors) {
    out.wanted.emplace_back(follow);
    out.cost_us += cost(*tensor, follow);
  }
  out.outputs.emplace_back(std::move(output));
  return out;
}

}  // namespace reshard
