// SPDX-License-Identifier: BSD-3-Clause
// Boxes sorted by the dim that separates them best, so that those that meet another are found
// without looking at all.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/layout/box.h"

namespace reshard {

class BoxIndex {
 public:
  // Boxes of equal dims; none is empty.
  explicit BoxIndex(std::vector<Box> boxes);

  const Box& operator[](std::size_t i) const { return boxes_[i]; }
  // The boxes that have an element in common with `box`, by number, ascending along the dim.
  template <class Visit>
  void for_each_meeting(const Box& box, Visit&& visit) const {
    for (std::size_t i = first(box); i < order_.size(); ++i) {
      const Box& other = boxes_[order_[i]];
      if (other.dims() > 0 && other.lo[dim_] >= box.hi[dim_]) return;
      if (!intersect(other, box).empty()) visit(order_[i]);
    }
  }
  // Two boxes that have an element in common, the lower number first.
  std::optional<std::pair<std::size_t, std::size_t>> overlap() const;

 private:
  // The first in the order that reaches `box`.
  std::size_t first(const Box& box) const;

  std::vector<Box> boxes_;
  int dim_ = 0;
  std::vector<std::size_t> order_;
  std::vector<std::int64_t> reach_;  // the greatest end of those up to here in the order
};

}  // namespace reshard
