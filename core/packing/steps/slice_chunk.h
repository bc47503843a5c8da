// SPDX-License-Identifier: BSD-3-Clause
// What goes along one tree at a time: some chunks of the tree's slice of a commodity, as boxes that
// are consecutive in source, destination and packed coordinates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/demand/commodities.h"
#include "core/packing/steps/commodity_string.h"

namespace reshard {

// A part of one tensor's item.
struct ChunkPart {
  TensorId tensor;
  std::int64_t first;  // of the tensors of a series; otherwise 0
  const Item* item;
  DimVector extents;
  int across;  // the dim along which the item is divided among trees
  std::size_t first_piece, pieces;
};

// One can take chunk after chunk of a slice, without new memory for each.
struct SliceChunk {
  // A box of a part, as for_each_fragment gives it (core/demand/items.h).
  struct Piece {
    DimVector source_lo, destination_lo, packed_lo, extents;
  };

  const Commodity& commodity;
  std::int32_t chunk = 0;  // that it is sent as: the last of its chunks
  std::vector<ChunkPart> parts = {};
  std::vector<Piece> all_pieces = {};  // part by part

  // Takes the share from lo/of to hi/of of the slice, which is cut into so many chunks.
  void take(const Commodities& commodities, const std::vector<StringPart>& slice, Share share,
            std::int64_t of, std::int32_t chunks);

  std::span<const Piece> pieces(const ChunkPart& part) const {
    return std::span(all_pieces).subspan(part.first_piece, part.pieces);
  }
  bool needs(Slot slot) const {
    return std::binary_search(commodity.needers.begin(), commodity.needers.end(), slot);
  }
  // Nothing is folded: needers divide what has arrived.
  bool divides() const { return commodity.divisor > 1 && !commodity.folds(); }
};

}  // namespace reshard
