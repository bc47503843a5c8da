// SPDX-License-Identifier: BSD-3-Clause
// The label on a tile of a sharding: its ranks and, if there is room, which part it is.
#pragma once

#include <optional>
#include <string>

#include "sim/picture/drawing.h"

namespace reshard::sim {

struct Rectangle {
  double x, y, width, height;
};

struct TileLabel {
  std::string ranks;
  std::string part;              // empty: not shown
  std::optional<Colour> ground;  // if the tile has a single colour; else the text gets a plate
  bool whole = false;            // all ranks or none; false: only the first if they do not fit
};

// The label is as large as fits, and reads upwards in a narrow tile; none if there is no room.
void add_tile_label(Node parent, const Rectangle& at, const TileLabel& label);
// Whether there is room for at least the first rank.
bool room_for_ranks(const Rectangle& at, const std::string& ranks);

// The width that a tile needs to show this part.
double width_for_part(const std::string& part);

}  // namespace reshard::sim
