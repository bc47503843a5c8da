// SPDX-License-Identifier: BSD-3-Clause
// What has to go from whom to whom: elements that the same ranks hold and the same ranks need.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace reshard {

// Ranks are known by their place in the meshes, the source's positions first: so nothing depends on
// how the ranks of a node are numbered.
struct Commodity {
  // Which source shard it is cut from and which destination shard it is for: numbers that are equal
  // for ranks that hold, or need, the same.
  std::int32_t from, to;
  std::int64_t bytes;  // above 0
  // Per addend the ranks that hold it, ascending; one list where nothing is folded.
  std::vector<std::vector<Slot>> holders;
  // Ranks that must end with it and do not hold it whole, ascending; at least one.
  std::vector<Slot> needers;
  bool folds() const { return holders.size() > 1; }
};

struct Commodities {
  std::vector<Commodity> list;          // ascending by (from, to)
  std::vector<std::int32_t> held_from;  // by slot: the `from` of what it holds; -1: nothing
  std::vector<std::int32_t> needed_to;  // by slot: the `to` of what it needs; -1: nothing
};

}  // namespace reshard
