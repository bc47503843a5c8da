// SPDX-License-Identifier: BSD-3-Clause
// What view operators need of placements: which axis cuts which dim.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/base/limits.h"

namespace reshard {

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

}  // namespace reshard
