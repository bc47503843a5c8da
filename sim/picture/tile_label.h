// SPDX-License-Identifier: BSD-3-Clause
// What is written on a tile of a sharding: whose it is and, where there is room, which part.
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
  std::string part;              // empty: not to be written
  std::optional<Colour> ground;  // where the tile has one; else the words get a plate
  bool whole = false;            // or nothing; else of too many ranks the first
};

// As large as fits; upwards in a narrow tile; nothing where there is no room.
void add_tile_label(Node parent, const Rectangle& at, const TileLabel& label);
// Whether there is room for the first rank at least.
bool room_for_ranks(const Rectangle& at, const std::string& ranks);

// Of a tile, to hold this part beside its edges.
double width_for_part(const std::string& part);

}  // namespace reshard::sim
