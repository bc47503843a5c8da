// SPDX-License-Identifier: BSD-3-Clause
#include "sim/dispatch/masks.h"

#include <algorithm>

#include "core/layout/layout.h"

namespace reshard::sim {

const OpPlacement* mask_of(const OpPlacements& placements) {
  for (const OpPlacement& placement : placements)
    if (placement.kind == OpPlacement::Kind::MaskPartial) return &placement;
  return nullptr;
}

Mask mask_at(const OpPlacements& index, const MeshRef& mesh, std::int32_t position) {
  const OpPlacement& mask = *mask_of(index);
  std::vector<Placement> parts;
  for (const OpPlacement& placement : index)
    parts.push_back(placement.kind == OpPlacement::Kind::MaskPartial ? Placement::shard(mask.dim)
                                                                     : Placement::replicate());
  Layout layout(mask.mask_shape, DType::F32, mesh, std::move(parts));
  Runs runs = layout.runs(mask.dim, position);
  return runs.empty() ? Mask{} : Mask{runs.front().global_lo, runs.back().global_hi(), {}};
}

Array shifted(const Array& index, Mask& mask) {
  std::vector<std::int64_t> out = values<std::int64_t>(index);
  for (std::int64_t& value : out) {
    bool other = value < mask.lo || value >= mask.hi;
    mask.others.push_back(other);
    value = other ? 0 : value - mask.lo;
  }
  return Array::of(index.dtype, index.shape, out);
}

void clear_others(const Mask& mask, Array& output) {
  if (mask.others.empty()) return;
  std::size_t each = to_index(output.count()) / mask.others.size();
  std::vector<double> out = values<double>(output);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (mask.others[i / std::max<std::size_t>(each, 1)]) out[i] = 0;
  output = Array::of(output.dtype, output.shape, out);
}

}  // namespace reshard::sim
