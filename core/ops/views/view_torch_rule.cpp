// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's rule, in two passes. The first goes over the output dims and finds which input dims may
// stay sharded on which axes; others are replicated or refused. The second places the remaining
// shards, axis by axis. A later dim can overrule an earlier one of the same group and PyTorch's
// results depend on that, so assignments here are in PyTorch's order.
#include "core/ops/views/view_rule.h"

#include <bit>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {

namespace {

using Kind = ViewDim::Kind;

class TorchRule {
 public:
  TorchRule(const ViewMap& map, const AxisShards& in, AxisSizes sizes)
      : map_(map), in_(in), sizes_(sizes), strict_(map.kind == ViewKind::Strict) {}

  TorchViewShards run() {
    if (analyse() && choose_inputs()) place();
    return std::move(result_);
  }

 private:
  int axes() const { return static_cast<int>(sizes_.size()); }
  std::int64_t size(int axis) const { return sizes_[to_index(axis)]; }
  const AxisShard& in(int axis) const { return in_[to_index(axis)]; }
  AxisShard& wanted(int axis) { return result_.wanted[to_index(axis)]; }
  AxisSet& allowed(int dim) { return allowed_[to_index(dim)]; }
  DimSet& targets(int dim) { return targets_[to_index(dim)]; }
  static int lowest(std::uint8_t set) { return std::countr_zero(set); }
  AxisSet all_axes() const { return static_cast<AxisSet>((1u << axes()) - 1); }
  bool refuse(std::string sentence) {
    result_.refusal = std::move(sentence);
    return false;
  }
  bool lose(int axis) {
    result_.lost_axis = axis;
    return false;
  }
  bool refuse_uneven(const char* what, int dim, std::int64_t length, int axis) {
    return refuse(
        fmt::format("{} {} (size {}) is not evenly divisible by mesh dimension {} (size "
                    "{}); redistribute the tensor first",
                    what, dim, length, axis, size(axis)));
  }

  // The first axis with a plain shard of the dim, or -1.
  int plain_axis(int dim) const {
    for (int axis = 0; axis < axes(); ++axis)
      if (in(axis).kind == AxisShard::Kind::Plain && in(axis).dim == dim) return axis;
    return -1;
  }

  // ---- the first pass

  bool analyse() {
    for (int o = 0; o < map_.output.size(); ++o)
      for (int d = map_.dim(o).first; d >= 0 && d <= map_.dim(o).last; ++d) allowed(d) = all_axes();
    for (int o = 0; o < map_.output.size(); ++o) {
      const ViewDim& dim = map_.dim(o);
      DimSet joined = 0;
      if (dim.kind == Kind::Input) targets(dim.first) |= only(o);
      if (dim.kind == Kind::Repeat) allowed(dim.first) = 0;
      if (dim.kind == Kind::Flatten) {
        if (!analyse_flatten(dim, joined)) return false;
        for (int d = dim.first; d <= dim.last; ++d)
          if (has(joined, d)) targets(d) = only(o);
      }
      if (dim.kind == Kind::Split && !analyse_split(o, dim)) return false;
    }
    return true;
  }

  // `joined`: the dims that may stay sharded, or the first dim if there are none.
  bool analyse_flatten(const ViewDim& dim, DimSet& joined) {
    joined = 0;
    for (int d = dim.first; d <= dim.last; ++d) {
      int axis = plain_axis(d);
      if (axis < 0) continue;
      std::int64_t length = map_.input[d];
      bool even = length % size(axis) == 0;
      if (strict_ && !even && d != dim.last)
        return refuse_uneven("Cannot flatten unevenly sharded tensor: dimension", d, length, axis);
      if (strict_ || d == dim.first) joined |= only(d);
      allowed(d) = strict_ || (d == dim.first && even) ? all_axes() : AxisSet{0};
    }
    if (joined == 0) joined = only(dim.first);
    return true;
  }

  bool analyse_split(int o, const ViewDim& dim) {
    DimSet joined = only(dim.first);
    bool flattened = dim.first != dim.last;
    if (flattened && !analyse_flatten(dim, joined)) return false;
    for (int d = dim.first + 1; d <= dim.last; ++d)
      for (int axis = 0; axis < axes(); ++axis)
        if (in(axis).kind == AxisShard::Kind::Plain && in(axis).dim == d) {
          allowed(d) &= static_cast<AxisSet>(~only(axis));
          given_up_[to_index(d)] |= only(axis);
        }
    int from = lowest(joined), shard_axis = axis_for_split(dim, from);
    std::int64_t length = map_.output[o];
    auto even = [&](int axis) { return length % size(axis) == 0; };
    auto refuse_unflatten = [&](int axis) {
      return refuse_uneven("Cannot unflatten unevenly sharded tensor: output dimension", dim.piece,
                           length, axis);
    };
    if (dim.piece == 0) {
      allowed(from) = 0;
      for (int axis = 0; axis < axes(); ++axis)
        if (even(axis)) allowed(from) |= only(axis);
      int axis = plain_axis(from);
      if (strict_ && axis >= 0 && !even(axis)) return refuse_unflatten(axis);
      targets(from) |= only(o);
    } else if (targets(dim.first) != 0) {
      targets(dim.first) |= only(o);
    }
    if (shard_axis >= 0 && in(shard_axis).kind == AxisShard::Kind::Strided) {
      if (strict_ && !dim.is_last && !even(shard_axis)) return refuse_unflatten(shard_axis);
      matched_ |= only(shard_axis);
      allowed(from) &= static_cast<AxisSet>(~only(shard_axis));
      if (even(shard_axis) || dim.is_last) allowed(from) |= only(shard_axis);
    }
    return true;
  }

  // The first axis that may shard this piece, by a plain shard or a strided one that fits; else -1.
  int axis_for_split(const ViewDim& dim, int from) const {
    for (int axis = 0; axis < axes(); ++axis)
      if (in(axis).cuts(from) && !has(matched_, axis) &&
          (in(axis).kind == AxisShard::Kind::Plain || fits_piece(dim, axis, in_)))
        return axis;
    return -1;
  }

  // Whether a strided shard's split factor is the product of the lengths to the left of this piece,
  // divided by what earlier axes cut off them.
  bool fits_piece(const ViewDim& dim, int axis, const AxisShards& shards) const {
    const AxisShard& shard = shards[to_index(axis)];
    std::int64_t expected = dim.left;
    for (int before = 0; before < axis; ++before) {
      if (!shards[to_index(before)].cuts(shard.dim)) continue;
      if (expected % size(before) != 0) return false;
      expected /= size(before);
    }
    return expected == shard.split_factor;
  }

  bool choose_inputs() {
    result_.wanted = in_;
    for (int axis = 0; axis < axes(); ++axis) {
      int dim = in(axis).dim;
      if (!in(axis).cuts() || has(allowed(dim), axis)) continue;
      if (strict_ && !has(given_up_[to_index(dim)], axis))
        return refuse(
            fmt::format("This operation would remove or reshape sharded dimension {}, "
                        "which requires redistribution; redistribute the input first",
                        dim));
      wanted(axis) = {};
    }
    return true;
  }

  // ---- the second pass

  void place() {
    for (int d = 0; d < map_.input.size(); ++d) local_.push_back(map_.input[d]);
    for (int axis = 0; axis < axes(); ++axis) {
      const AxisShard& shard = wanted(axis);
      if (!shard.cuts()) continue;
      bool placed = shard.kind == AxisShard::Kind::Plain ? place_plain(axis, shard)
                                                         : place_strided(axis, shard);
      if (!placed) return;
      local_[shard.dim] /= size(axis);
    }
  }

  DimSet open_targets(int dim) {
    return static_cast<DimSet>(targets(dim) & ~claimed_[to_index(dim)]);
  }

  void put(int axis, AxisShard::Kind kind, int dim, std::int64_t split_factor = 1) {
    result_.out[to_index(axis)] = {kind, static_cast<std::int8_t>(dim), split_factor};
  }

  bool place_plain(int axis, const AxisShard& shard) {
    DimSet open = open_targets(shard.dim);
    int target = open == 0 ? -1 : lowest(open);
    if (std::popcount(open) > 1) {
      target = -1;
      for (int o = map_.output.size() - 1; o >= 0; --o)
        if (has(open, o) && map_.dim(o).kind == Kind::Split && map_.dim(o).piece == 0) target = o;
    }
    if (target < 0) return lose(axis);
    const ViewDim& dim = map_.dim(target);
    if (dim.kind == Kind::Split && shard.dim != dim.first) return lose(axis);
    if (dim.kind != Kind::Flatten) {
      put(axis, AxisShard::Kind::Plain, target);
      return true;
    }
    std::int64_t before = 1;
    for (int d = dim.first; d < shard.dim; ++d) before *= local_[d];
    if (local_[shard.dim] % size(axis) != 0 && cut_after(axis, dim))
      return refuse_uneven("Cannot shard unevenly distributed tensor: dimension", shard.dim,
                           local_[shard.dim], axis);
    put(axis, shard.dim == dim.first ? AxisShard::Kind::Plain : AxisShard::Kind::Strided, target,
        before);
    return true;
  }

  // Whether a later axis cuts this axis's dim or a later dim of the group.
  bool cut_after(int axis, const ViewDim& dim) {
    int from = wanted(axis).dim;
    for (int later = axis + 1; later < axes(); ++later)
      if (wanted(later).cuts() && wanted(later).dim >= from && wanted(later).dim <= dim.last)
        return true;
    return false;
  }

  bool place_strided(int axis, const AxisShard& shard) {
    DimSet open = open_targets(shard.dim);
    bool split = false;
    for (int o = 0; o < map_.output.size(); ++o) {
      if (!has(open, o) || map_.dim(o).kind != Kind::Split) continue;
      split = true;
      if (!fits_piece(map_.dim(o), axis, result_.wanted)) continue;
      claimed_[to_index(shard.dim)] |= only(o);
      put(axis, AxisShard::Kind::Plain, o);
      return true;
    }
    int target = target_that_keeps(open, axis, shard);
    if (target < 0 && strict_ && split)
      return refuse(
          fmt::format("Cannot unflatten tensor with _StridedShard placement: "
                      "split_factor={} does not match any output dimension; redistribute "
                      "the tensor first",
                      shard.split_factor));
    if (target < 0 && open == 0) return lose(axis);
    put(axis, AxisShard::Kind::Strided, target < 0 ? lowest(open) : target, shard.split_factor);
    return true;
  }

  // The first piece with inner lengths that divide what one shard holds contiguously, or -1.
  int target_that_keeps(DimSet open, int axis, const AxisShard& shard) const {
    std::int64_t length = map_.input[shard.dim], shards = size(axis) * shard.split_factor;
    if (length % shards != 0) return -1;
    for (int o = 0; o < map_.output.size(); ++o) {
      const ViewDim& dim = map_.dim(o);
      if (!has(open, o) || dim.kind != Kind::Split) continue;
      std::int64_t in_a_row = length / shards;
      for (int d = shard.dim + 1; d <= dim.last; ++d) in_a_row *= map_.input[d];
      if (dim.right != 0 && in_a_row >= dim.right && in_a_row % dim.right == 0) return o;
    }
    return -1;
  }

  const ViewMap& map_;
  const AxisShards& in_;
  AxisSizes sizes_;
  bool strict_;
  std::array<AxisSet, kMaxDims> allowed_{};   // by input dim: axes that may shard it
  std::array<AxisSet, kMaxDims> given_up_{};  // by input dim: axes that even Strict replicates
  std::array<DimSet, kMaxDims> targets_{};    // by input dim: output dims that it goes to
  std::array<DimSet, kMaxDims> claimed_{};  // by input dim: targets that a strided shard has taken
  AxisSet matched_ = 0;                     // axes with a strided shard that has found its piece
  DimVector local_;                         // the input's lengths, divided axis by axis
  TorchViewShards result_;
};

}  // namespace

TorchViewShards torch_view_shards(const ViewMap& map, const AxisShards& in, AxisSizes sizes) {
  return TorchRule(map, in, sizes).run();
}

}  // namespace reshard
