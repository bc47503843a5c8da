// SPDX-License-Identifier: BSD-3-Clause
// Cuts the string of bytes that a commodity is. Whole items stay whole, and of the items of a
// series whole tensors; the item, or the tensor of it, in which a cut falls is cut along one of its
// dims, at the index that is nearest below.
#pragma once

#include <cstdint>
#include <vector>

#include "core/demand/commodities.h"

namespace reshard {

// A box of an item, in its packed coordinates and with the dims of the plan. Not empty.
struct StringPart {
  CommodityPart of;
  Box box;
  int across;  // the dim along which slices cut the item, or that of one tensor: its longest
  std::int64_t bytes;
};

struct Share {
  std::int64_t lo, hi;
};

// The share from lo/of to hi/of of a commodity.
std::vector<StringPart> slice_of(const Commodities& commodities, const Commodity& commodity,
                                 Share share, std::int64_t of);

// The share from lo/of to hi/of of a slice. Items are cut along their second longest dim if it has
// enough indices for so many chunks.
std::vector<StringPart> chunk_of(const Commodities& commodities,
                                 const std::vector<StringPart>& slice, Share share, std::int64_t of,
                                 std::int32_t chunks);

}  // namespace reshard
