// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's answer for a view, corrected where it would move elements or fail.
#include "core/ops/views/view_rule.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {

namespace {

constexpr std::string_view kLost =
                               "PyTorch 2.15 raises an internal error here: its rule finds no "
                               "output dim for a shard of the input",
                           kElsewhere =
                               "PyTorch 2.15 fails or is silently wrong here: it keeps a shard, "
                               "but the view places its elements on other ranks (pytorch #143372)",
                           kMasked =
                               "PyTorch 2.15 fails or is silently wrong here: it masks the rows of "
                               "a look-up by indices that no longer match the leading dims";

std::string refusal_of(int dim) {
  return fmt::format(
      "This operation would remove or reshape sharded dimension {}, which requires "
      "redistribution; redistribute the input first",
      dim);
}

// Whether a view keeps the dims that a look-up's mask is over: when its addends are summed, they
// are masked by the indices, which are the leading dims. (PyTorch lets every view pass, and then
// fails or masks other rows.)
bool keeps_mask(const ViewMap& map, const OpPlacement& placement) {
  for (int d = 0; d < placement.mask_dims; ++d)
    if (d >= map.output.size() || map.dim(d).kind != ViewDim::Kind::Input || map.dim(d).first != d)
      return false;
  return true;
}

// Sums a look-up's addends first if they could not be masked after the view. Operators with rows
// have no row for such addends.
void sum_masked(const ViewMap& map, ViewResult& result) {
  for (std::size_t axis = 0; axis < result.wanted.size(); ++axis) {
    const OpPlacement& placement = result.wanted[axis];
    if (placement.kind != OpPlacement::Kind::MaskPartial) continue;
    bool has_rows = map.kind == ViewKind::Rows;
    if (!has_rows && keeps_mask(map, placement)) continue;
    if (!has_rows && result.corrected.empty()) result.corrected = kMasked;
    result.wanted[axis] = result.output[axis] = OpPlacement::replicate();
  }
}

}  // namespace

AxisShard shard_of(const OpPlacement& placement) {
  if (!placement.is_shard_like()) return {};
  bool plain = placement.kind == OpPlacement::Kind::Shard;
  return {plain ? AxisShard::Kind::Plain : AxisShard::Kind::Strided, placement.dim,
          plain ? 1 : placement.split_factor};
}

OpPlacements placements_of(const OpPlacements& before, const AxisShards& shards) {
  OpPlacements out = before;
  for (std::size_t axis = 0; axis < before.size(); ++axis) {
    if (!before[axis].is_shard_like()) continue;
    const AxisShard& shard = shards[axis];
    out[axis] = {};
    if (!shard.cuts()) continue;
    out[axis].kind = shard.kind == AxisShard::Kind::Plain ? OpPlacement::Kind::Shard
                                                          : OpPlacement::Kind::StridedShard;
    out[axis].dim = shard.dim;
    out[axis].split_factor = shard.split_factor;
  }
  return out;
}

ViewResult propagate(const ViewMap& map, const TensorSpec& input, AxisSizes sizes) {
  RESHARD_CHECK(input.placements.size() == sizes.size() && sizes.size() <= kMaxAxes,
                "one placement per axis");
  AxisShards shards;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    shards[axis] = shard_of(input.placements[axis]);
  ViewResult result;
  while (true) {
    TorchViewShards torch = torch_view_shards(map, shards, sizes);
    AxisSet lost = torch.lost_axis >= 0 ? only(torch.lost_axis) : AxisSet{0};
    if (!torch.refusal.empty()) {
      result.refusal = std::move(torch.refusal);
      return result;
    }
    if (lost == 0) lost = moved_axes(map, torch.wanted, torch.out, sizes);
    if (lost == 0) {
      result.wanted = placements_of(input.placements, torch.wanted);
      result.output = placements_of(input.placements, torch.out);
      result.of_view =
          has_strided(result.output) && (input.of_view || !has_strided(input.placements));
      sum_masked(map, result);
      return result;
    }
    result.corrected = torch.lost_axis >= 0 ? kLost : kElsewhere;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (!has(lost, static_cast<int>(axis))) continue;
      if (map.kind == ViewKind::Strict) {
        result.refusal = refusal_of(shards[axis].dim);
        return result;
      }
      shards[axis] = {};
    }
  }
}

Shape local_sizes(const ViewMap& map, const OpPlacements& output, MeshRef mesh,
                  std::int32_t position) {
  std::vector<Placement> placements(output.size());
  for (std::size_t axis = 0; axis < output.size(); ++axis)
    if (output[axis].is_shard_like()) {
      AxisShard shard = shard_of(output[axis]);
      placements[axis] = shard.kind == AxisShard::Kind::Plain
                             ? Placement::shard(shard.dim)
                             : Placement::strided_shard(shard.dim, shard.split_factor);
    }
  return Layout(map.output, DType::I8, std::move(mesh), std::move(placements))
      .local_shape(position);
}

}  // namespace reshard
