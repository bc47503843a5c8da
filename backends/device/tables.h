// SPDX-License-Identifier: BSD-3-Clause
// Cuts boxes of dense row-major arrays into the tiles that kernels work on.
//
// A box is reduced to as few dims as possible (core/bytes/box_copy.h) and cut into tiles of about
// one size: long rows into segments, short rows gathered along the longest dim outside the row, so
// that a tile is worth its descriptor whatever the shape of the box. Tiles are grouped by the
// largest unit to which their whole box is aligned, so one unaligned box does not slow the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/device/device.h"
#include "core/bytes/box_copy.h"

namespace reshard::backends {

// Bytes per tile in a launch that moves `total_bytes`: large tiles amortise their descriptors,
// small ones keep the whole GPU busy.
std::int64_t tile_bytes_for(std::int64_t total_bytes);

// Threads per tile for tiles of `units` units on average and at most `most`.
int lanes_for(std::int64_t units, std::int64_t most, std::int64_t tile_bytes);

// The copies and clears of one launch. Boxes must not overlap; extents > 0.
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

// The folds of one launch.
class FoldTiles {
 public:
  FoldTiles(std::int64_t total_bytes, std::int64_t element_bytes)
      : tile_bytes_(tile_bytes_for(total_bytes)), element_bytes_(element_bytes) {}

  // Operand k starts in the array operands[k], at operand_places[k].
  void fold(std::byte* destination, const BoxPlace& destination_place,
            std::span<const std::byte* const> operands, std::span<const BoxPlace> operand_places,
            const DimVector& extents);

  // Tiles in units of 16 bytes, and tiles in units of one element. Until upload, a tile's operands
  // are given by an index into operands().
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
