// SPDX-License-Identifier: BSD-3-Clause
// The items of a request with a layout that is not a product: the tensor is cut wherever the boxes
// of some rank begin or end, dim by dim, until every part has one set of holders and one set of
// needing ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

// A rank that has a box in its shard.
struct ShardPlace {
  Slot slot;
  DimVector shift;          // what to add to a global index
  std::int64_t addend = 0;  // in the source: which one it holds
};

// The ranks that hold and the ranks that need some boxes, the same for all of their elements. All
// lists ascend.
struct BoxEnds {
  std::vector<ShardPlace> sources, destinations;
  // By addend, positions in the source mesh; at least one.
  std::vector<std::vector<std::int32_t>> holders;
  std::vector<Slot> needing;  // the slots of `destinations`; at least one
};

// Null if the rank has no box.
const ShardPlace* place_of(const std::vector<ShardPlace>& places, Slot slot);
// Converts a global index to one in the shard of a rank that has one of the places; `lo` can have
// dims before those of the tensor.
DimVector local_index(const std::vector<ShardPlace>& places, Slot slot, DimVector lo);

// A box of the tensor, in global indices, and the index of its BoxEnds.
struct EndedBox {
  Box box;
  std::int32_t ends;
};

struct BoxItems {
  std::vector<BoxEnds> ends;                      // in the order of their first boxes
  std::vector<EndedBox> boxes;                    // disjoint, all that some rank needs; ascending
  std::vector<std::vector<std::int32_t>> needed;  // by slot: the boxes that the rank needs
};

// `source_slot`, `destination_slot`: by mesh position, below `slots`.
BoxItems box_items(const Request& request, const std::vector<Slot>& source_slot,
                   const std::vector<Slot>& destination_slot, std::size_t slots);

}  // namespace reshard
