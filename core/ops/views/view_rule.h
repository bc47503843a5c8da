// SPDX-License-Identifier: BSD-3-Clause
// How views carry placements: which axis cuts which dim, what PyTorch does with it, whether that is
// right, and what is decided.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/limits.h"
#include "core/ops/views/view_map.h"

namespace reshard {

// The part of placements that view operators need: which axis cuts which dim.

struct AxisShard {
  enum class Kind : std::uint8_t { None, Plain, Strided };
  Kind kind = Kind::None;
  std::int8_t dim = 0;
  std::int64_t split_factor = 1;  // Strided

  bool cuts() const { return kind != Kind::None; }
  bool cuts(int d) const { return cuts() && dim == d; }
  friend bool operator==(const AxisShard&, const AxisShard&) = default;
};
using AxisShards = std::array<AxisShard, kMaxAxes>;  // None beyond the mesh's axes

using AxisSizes = std::span<const std::int32_t>;

// Sets of axes and of dims.
using AxisSet = std::uint8_t;
using DimSet = std::uint8_t;
static_assert(kMaxAxes <= 8 && kMaxDims <= 8);
constexpr std::uint8_t only(int index) { return static_cast<std::uint8_t>(1u << index); }
constexpr bool has(std::uint8_t set, int index) { return (set >> index & 1u) != 0; }

// How PyTorch 2.15 carries shards through a view, unchanged: it may be wrong.

struct TorchViewShards {
  AxisShards wanted, out;
  std::string refusal;  // empty: none
  int lost_axis = -1;   // the axis for which PyTorch finds no place and fails internally; -1: none
};

TorchViewShards torch_view_shards(const ViewMap& map, const AxisShards& in, AxisSizes sizes);

// Whether a view leaves every element on its rank. Returns the axes on which the output's shards
// are not what the input's become; 0 if each rank's part of the output holds the elements of its
// part of the input, in their order. Never 0 if an element is elsewhere, but can name an axis on
// which shards agree only because lengths are short.
AxisSet moved_axes(const ViewMap& map, const AxisShards& in, const AxisShards& out,
                   AxisSizes sizes);

// The placements that a view operator wants and produces.

struct ViewResult {
  OpPlacements wanted, output;
  bool of_view = false;             // a view made the output's _StridedShard
  std::string refusal;              // empty: none. If set, wanted and output are empty
  std::string_view corrected = {};  // what PyTorch does wrong here; empty: nothing
};

// `sizes`: of the mesh's axes. Partials pass through. The result is PyTorch's, except where that
// would be wrong or fail internally: there a strict operator refuses, and any other replicates what
// cannot be carried through.
ViewResult propagate(const ViewMap& map, const TensorSpec& input, AxisSizes sizes);

AxisShard shard_of(const OpPlacement& placement);
// `before` with its shards replaced by these, replicated where there are none.
OpPlacements placements_of(const OpPlacements& before, const AxisShards& shards);

// The shape of a rank's part of the output, by its position in the mesh.
Shape local_sizes(const ViewMap& map, const OpPlacements& output, MeshRef mesh,
                  std::int32_t position);

}  // namespace reshard
