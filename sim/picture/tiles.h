// SPDX-License-Identifier: BSD-3-Clause
// A layout as tiles in a plane: which ranks hold which part of the tensor, in few enough parts to
// draw.
//
// Along two dims every layout is a grid: its rows and columns are bounded by the indices at which
// some rank's boxes begin or end. A tensor of more dims is shown in slices: ranges of the other
// dims in which neither side is cut. If a dim has more cuts than can be drawn, neighbours are
// joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

// The visible part of a request: the two dims with the most cuts, the lower down, the higher
// across.
struct TileView {
  int down = -1, across = -1;      // -1: the tensor has no such dim
  std::vector<Box> slices;         // boxes of the tensor, row-major; at most kMostSlices
  std::int64_t slices_in_all = 0;  // how many would show everything
};
inline constexpr std::size_t kMostSlices = 4;
TileView view_of(const Request& request);

struct Tile {
  Box box;                              // global indices, within the slice
  std::vector<std::int32_t> positions;  // mesh positions holding a part of it, ascending; not empty
};
// The tiles of a slice that some rank holds, row-major: all tiles, unless the layout has explicit
// boxes. At most 256 in all slices together.
std::vector<Tile> tiles_of(const Layout& layout, const TileView& view, const Box& slice);

// Whether some tile contains several neighbouring shards.
bool shards_joined(const Layout& layout, const TileView& view);

// "[0:512, :]"; a whole dim is ":", a scalar "[]".
std::string slice_text(const Box& box, const Shape& shape);

// The ranks at these positions: different addends of one value are separated by the sign of the
// operator, ranks with the same data by a comma: "0,4 + 1,5".
std::string holders_text(const Layout& layout, const std::vector<std::int32_t>& positions);

}  // namespace reshard::sim
