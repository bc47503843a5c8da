// SPDX-License-Identifier: BSD-3-Clause
// A layout as tiles in a plane: which part of the tensor is whose, in few enough parts to draw.
//
// A rank's index set is a product over dims (core/layout/layout.h), so along two dims every layout
// is a grid: rows and columns are the runs of the pieces of either dim, and a tile is held by the
// ranks that have both pieces. A tensor of more dims is seen in slices, each at indices of the
// other dims along which neither side is cut. Where a dim has more runs than can be drawn,
// neighbouring ones make one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

// What is seen of a request: the two dims that are cut most, down and across in their order.
struct TileView {
  int down = -1, across = -1;      // -1: the tensor has no such dim
  std::vector<Box> slices;         // of the whole tensor, row-major; at most kMostSlices
  std::int64_t slices_in_all = 0;  // what would be needed to see everything
};
inline constexpr std::size_t kMostSlices = 4;
TileView view_of(const Request& request);

struct Tile {
  Box box;                              // global indices, within the slice
  std::vector<std::int32_t> positions;  // of the mesh that hold something of it, ascending
};
// Row-major; together they are the slice. At most 256 in all slices.
std::vector<Tile> tiles_of(const Layout& layout, const TileView& view, const Box& slice);

// Whether some tile is of several shards that lie side by side.
bool shards_joined(const Layout& layout, const TileView& view);

// "[0:512, :]"; a dim that is whole is ":", a scalar "[]".
std::string slice_text(const Box& box, const Shape& shape);

// The ranks at these positions. Those that hold addends of one value are joined by the operator's
// sign, those that hold the same by a comma: "0,4 + 1,5".
std::string holders_text(const Layout& layout, const std::vector<std::int32_t>& positions);

}  // namespace reshard::sim
