// SPDX-License-Identifier: BSD-3-Clause
// Boxes sorted along the dim that separates them best, so that a search for those that overlap a
// given box need not test them all; and the boxes of each slab between indices at which some begin
// or end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/sort_once.h"
#include "core/layout/box.h"

namespace reshard {

class BoxIndex {
 public:
  // Boxes of equal dims; none is empty.
  explicit BoxIndex(std::vector<Box> boxes);

  const Box& operator[](std::size_t i) const { return boxes_[i]; }
  // Calls visit(number) for the boxes that overlap `box`, ascending along the dim.
  template <class Visit>
  void for_each_meeting(const Box& box, Visit&& visit) const {
    for (std::size_t i = first(box); i < order_.size(); ++i) {
      const Box& other = boxes_[order_[i]];
      if (other.dims() > 0 && other.lo[dim_] >= box.hi[dim_]) return;
      if (!intersect(other, box).empty()) visit(order_[i]);
    }
  }
  // Two boxes that overlap, the lower number first; none if all are disjoint.
  std::optional<std::pair<std::size_t, std::size_t>> overlap() const;

 private:
  // The first place in the order at which a box can overlap `box`.
  std::size_t first(const Box& box) const;

  std::vector<Box> boxes_;
  int dim_ = 0;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> reach_;  // by place in the order: the greatest end so far
};

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
