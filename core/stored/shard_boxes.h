// SPDX-License-Identifier: BSD-3-Clause
// Finds a box of the tensor in a rank's shard of a layout of boxes.
#pragma once

#include <vector>

#include "core/layout/box_index.h"
#include "core/layout/layout.h"

namespace reshard {

class ShardBoxes {
 public:
  // Has no boxes if the rank has no shard.
  ShardBoxes(const Layout& layout, Rank rank) : parts_(parts_of(layout, rank)), index_(boxes()) {}

  // Calls visit(box, its lowest index in the shard) for disjoint boxes that make up what the shard
  // has of `box`.
  template <class Visit>
  void for_each(const Box& box, Visit&& visit) const {
    index_.for_each_meeting(box, [&](std::size_t i) {
      Box common = intersect(parts_[i].box, box);
      DimVector local_lo = parts_[i].local_lo;
      for (int d = 0; d < box.dims(); ++d) local_lo[d] += common.lo[d] - parts_[i].box.lo[d];
      visit(common, local_lo);
    });
  }

 private:
  static std::vector<Part> parts_of(const Layout& layout, Rank rank) {
    std::vector<Part> out;
    if (auto position = layout.mesh().position_of(rank))
      layout.for_each_part(*position, [&](const Box& box, const DimVector& local_lo) {
        out.push_back({box, local_lo});
      });
    return out;
  }
  std::vector<Box> boxes() const {
    std::vector<Box> out;
    for (const Part& part : parts_) out.push_back(part.box);
    return out;
  }

  std::vector<Part> parts_;
  BoxIndex index_;
};

}  // namespace reshard
