// SPDX-License-Identifier: BSD-3-Clause
// Placements of all axes, and the order in which they cut each dim, packed into 64 bits: one byte
// per axis, so a step is a mask and states compare and hash as integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/layout/layout.h"

namespace reshard::packed {

// One byte per axis: 0 for R, 1 + the operator for P; for a shard its dim and its place in the
// dim's order.
using State = std::uint64_t;
using Code = std::uint8_t;

inline constexpr Code kReplicate = 0, kFirstShard = 16;
inline constexpr int kPlaces = 8;
static_assert(kMaxAxes <= kPlaces && kFirstShard + kMaxDims * kPlaces <= 256);

inline Code partial_code(ReduceOp op) { return static_cast<Code>(1 + static_cast<int>(op)); }
inline Code shard_code(int dim, int place) {
  return static_cast<Code>(kFirstShard + dim * kPlaces + place);
}
inline bool is_shard(Code code) { return code >= kFirstShard; }
inline bool is_partial(Code code) { return code != kReplicate && code < kFirstShard; }
inline int dim_of(Code code) { return (code - kFirstShard) / kPlaces; }
inline int place_of(Code code) { return (code - kFirstShard) % kPlaces; }
inline ReduceOp op_of(Code code) { return static_cast<ReduceOp>(code - 1); }

inline Code code_at(State state, int axis) { return static_cast<Code>(state >> (8 * axis)); }
inline State with(State state, int axis, Code code) {
  return (state & ~(State{0xff} << (8 * axis))) | State{code} << (8 * axis);
}

inline Placement placement_of(Code code) {
  if (is_shard(code)) return Placement::shard(dim_of(code));
  return is_partial(code) ? Placement::partial(op_of(code)) : Placement::replicate();
}

inline State state_of(const Layout& layout) {
  State state = 0;
  for (int axis = 0; axis < layout.mesh().axes(); ++axis)
    if (layout.placement(axis).is_partial())
      state = with(state, axis, partial_code(layout.placement(axis).op));
  for (int dim = 0; dim < layout.dims(); ++dim)
    for (std::size_t place = 0; place < layout.stack(dim).size(); ++place)
      state = with(state, layout.stack(dim)[place], shard_code(dim, static_cast<int>(place)));
  return state;
}

// Facts that the search needs repeatedly about a state.
struct StateFacts {
  std::array<Code, kMaxAxes> codes{};
  std::array<int, kMaxDims> depth{}, innermost{};  // axes that cut the dim; the last of them
  double shards = 1.0;
  std::uint32_t ops = 0;  // a bit per operator
};

inline StateFacts facts_of(State state, const Mesh& mesh) {
  StateFacts out;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    Code code = out.codes[to_index(axis)] = code_at(state, axis);
    if (is_partial(code)) out.ops |= 1U << static_cast<int>(op_of(code));
    if (!is_shard(code)) continue;
    out.shards *= static_cast<double>(mesh.axis_size(axis));
    int& depth = out.depth[to_index(dim_of(code))];
    if (place_of(code) + 1 > depth) {
      depth = place_of(code) + 1;
      out.innermost[to_index(dim_of(code))] = axis;
    }
  }
  return out;
}

}  // namespace reshard::packed
