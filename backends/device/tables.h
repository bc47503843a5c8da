// SPDX-License-Identifier: BSD-3-Clause
// Boxes of dense row-major arrays cut into the tiles that kernels work on.
//
// A box is reduced to as few dims as possible (core/bytes/box_copy.h) and cut into tiles of one
// size: long rows into segments, short ones gathered along the longest dim outside the row, so that
// a tile is worth a descriptor whatever the box looks like. Tiles are grouped by the largest unit
// to which all of a box is aligned; one odd box does not slow the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/device/device.h"
#include "core/bytes/box_copy.h"

namespace reshard::backends {

// Bytes of a tile in a launch that moves about so many: large ones amortise their descriptor, small
// ones keep all of a GPU busy.
std::int64_t tile_bytes_for(std::int64_t total_bytes);

// Threads per tile for tiles of `units` units on average and `most` at most.
int lanes_for(std::int64_t units, std::int64_t most, std::int64_t tile_bytes);

// Copies and clears of one launch. Boxes do not overlap; extents > 0.
class CopyTiles {
 public:
  explicit CopyTiles(std::int64_t total_bytes) : tile_bytes_(tile_bytes_for(total_bytes)) {}

  void copy(std::byte* destination, const BoxPlace& destination_place, const std::byte* source,
            const BoxPlace& source_place, const DimVector& extents, std::int64_t element_bytes);
  void clear(std::byte* destination, const BoxPlace& place, const DimVector& extents,
             std::int64_t element_bytes);

  static constexpr std::size_t kUnits = 5;  // group g holds the tiles in units of 1 << g bytes
  const std::vector<CopyTile>& group(std::size_t g) const { return groups_[g]; }
  std::int64_t tile_bytes() const { return tile_bytes_; }

 private:
  std::int64_t tile_bytes_;
  std::array<std::vector<CopyTile>, kUnits> groups_;
};

// Folds of one launch.
class FoldTiles {
 public:
  FoldTiles(std::int64_t total_bytes, std::int64_t element_bytes)
      : tile_bytes_(tile_bytes_for(total_bytes)), element_bytes_(element_bytes) {}

  // Operand k lies at operands[k], in an array as operand_places[k] says.
  void fold(std::byte* destination, const BoxPlace& destination_place,
            std::span<const std::byte* const> operands, std::span<const BoxPlace> operand_places,
            const DimVector& extents);

  // Tiles in units of 16 bytes, and those in units of one element. Their operands are places in
  // operands() until they are uploaded.
  struct Tile {
    FoldTile tile;
    std::size_t first_operand;
  };
  const std::vector<Tile>& wide() const { return wide_; }
  const std::vector<Tile>& narrow() const { return narrow_; }
  const std::vector<FoldOperand>& operands() const { return operands_; }
  std::int64_t tile_bytes() const { return tile_bytes_; }
  std::int64_t element_bytes() const { return element_bytes_; }

 private:
  std::int64_t tile_bytes_, element_bytes_;
  std::vector<Tile> wide_, narrow_;
  std::vector<FoldOperand> operands_;
};

}  // namespace reshard::backends
