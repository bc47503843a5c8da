// SPDX-License-Identifier: BSD-3-Clause
// Boxes in the slabs between the indices of one dim at which some of them begin or end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/sort_once.h"
#include "core/layout/box.h"

namespace reshard {

// Calls visit(lo, hi, the boxes that contain [lo, hi) of `dim`) for consecutive slabs from `lo` to
// `hi`, which no box exceeds; for those without a box too. `local_of` gives an item's box.
template <class Item, class LocalOf, class Visit>
void for_each_slab(std::vector<Item> items, int dim, std::int64_t lo, std::int64_t hi,
                   LocalOf&& local_of, Visit&& visit) {
  std::vector<std::int64_t> cuts{lo, hi};
  for (const Item& item : items) {
    cuts.push_back(local_of(item).lo[dim]);
    cuts.push_back(local_of(item).hi[dim]);
  }
  sort_once(cuts);
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    return local_of(a).lo[dim] < local_of(b).lo[dim];
  });
  std::vector<Item> inside;
  auto next = items.begin();
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    std::erase_if(inside, [&](const Item& item) { return local_of(item).hi[dim] <= cuts[k]; });
    while (next != items.end() && local_of(*next).lo[dim] == cuts[k]) inside.push_back(*next++);
    visit(cuts[k], cuts[k + 1], inside);
  }
}

}  // namespace reshard
