// SPDX-License-Identifier: BSD-3-Clause
// stack: all tensors get the same placements, derived from those that they have.
#include "core/ops/rules/rules.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

using Tensors = std::vector<const TensorSpec*>;

// A shard wins over a partial, and both win over a replica. Two shards, or two partials, that
// differ become a replica, which a later tensor can change again.
OpPlacement common(const OpPlacement& a, const OpPlacement& b) {
  if (a == b || b.is_replicate()) return a;
  if (a.is_replicate() || (a.is_partial() && b.is_shard_like())) return b;
  return a.is_shard_like() && b.is_partial() ? a : OpPlacement::replicate();
}

// Whether all tensors can be brought to this placement: a replica becomes any partial but a
// product, a shard only a sum, and a partial no other partial.
bool can_follow(const Tensors& tensors, std::size_t axis, const OpPlacement& wanted) {
  if (!wanted.is_partial()) return true;
  return std::all_of(tensors.begin(), tensors.end(), [&](const TensorSpec* tensor) {
    const OpPlacement& has = tensor->placements[axis];
    return has == wanted || (has.is_replicate() && !wanted.is_partial(ReduceOp::Product)) ||
           (has.is_shard_like() && wanted.is_partial(ReduceOp::Sum));
  });
}

// Sums and averages can be combined in one list; no other two kinds of partial can.
bool may_meet(const OpPlacement& a, const OpPlacement& b) {
  auto is_linear = [](const OpPlacement& p) {
    return p.is_partial(ReduceOp::Sum) || p.is_partial(ReduceOp::Avg);
  };
  return !a.is_partial() || !b.is_partial() || a == b || (is_linear(a) && is_linear(b));
}

// Axes on which tensors cannot have the placement that PyTorch wants are replicated. So are masked
// look-ups if the new dim comes before the dims of the mask.
OpPlacements followed(const Tensors& tensors, std::int64_t dim, bool& corrected) {
  OpPlacements out = tensors.front()->placements;
  for (std::size_t axis = 0; axis < out.size(); ++axis) {
    for (const TensorSpec* tensor : tensors)
      out[axis] = common(out[axis], tensor->placements[axis]);
    bool fits = can_follow(tensors, axis, out[axis]) && dim >= out[axis].mask_dims;
    for (std::size_t before = 0; before < axis; ++before)
      fits = fits && may_meet(out[before], out[axis]);
    if (fits) continue;
    out[axis] = OpPlacement::replicate();
    corrected = true;
  }
  return out;
}

}  // namespace

Decision decide_stack(const OpCall& call, std::span<const std::int32_t>, const MoveCost& cost) {
  const Tensors tensors = call.arguments.empty() ? Tensors{} : call.arguments[0].tensors;
  if (tensors.empty() || std::find(tensors.begin(), tensors.end(), nullptr) != tensors.end())
    throw InputError("stack: expected a list of tensors without None");
  const TensorMeta& meta = tensors.front()->meta;
  for (const TensorSpec* tensor : tensors)
    if (tensor->meta.shape != meta.shape)
      throw InputError(
          fmt::format("stack: [{}] and [{}] differ", text(meta.shape), text(tensor->meta.shape)));
  int dims = meta.shape.size() + 1;
  std::int64_t dim = call.attributes.integer("dim", 0);
  if (dim < -dims || dim >= dims || dims > kMaxDims)
    throw InputError(fmt::format("attr dim: {} is out of range for {} dims", dim, dims));
  if (dim < 0) dim += dims;
  Decision out;
  bool corrected = false;
  OpPlacements follow = followed(tensors, dim, corrected);
  if (corrected)
    out.corrected =
        "PyTorch 2.15 fails here: it chooses Partial for tensors that it cannot redistribute to "
        "Partial or mask";
  TensorSpec output{{{}, meta.dtype}, follow};
  output.of_view = has_strided(output.placements) &&
                   std::all_of(tensors.begin(), tensors.end(), [](const TensorSpec* tensor) {
                     return tensor->of_view || !has_strided(tensor->placements);
                   });
  for (int d = 0; d < dims; ++d)
    output.meta.shape.push_back(d == dim ? static_cast<std::int64_t>(tensors.size())
                                         : meta.shape[d < dim ? d : d - 1]);
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
