// SPDX-License-Identifier: BSD-3-Clause
// A commodity is what must move between the same ranks: elements that the same ranks hold and the
// same ranks need.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace reshard {

// Ranks are identified by their place in the meshes, the source's positions first, so that nothing
// depends on how the ranks of a node are numbered.
struct Commodity {
  // The source shard that it is cut from and the destination shard that it is for, as numbers that
  // are equal for ranks that hold (need) the same.
  std::int32_t from, to;
  std::int64_t bytes;  // above 0
  // Per addend, the ranks that hold it, ascending; one list if nothing is folded.
  std::vector<std::vector<Slot>> holders;
  // Ranks that must end up with it and do not hold it whole, ascending; at least one.
  std::vector<Slot> needers;
  bool folds() const { return holders.size() > 1; }
};

struct Commodities {
  std::vector<Commodity> list;          // ascending by (from, to)
  std::vector<std::int32_t> held_from;  // by slot: the `from` of what it holds; -1: nothing
  std::vector<std::int32_t> needed_to;  // by slot: the `to` of what it needs; -1: nothing
};

}  // namespace reshard
