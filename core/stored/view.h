// SPDX-License-Identifier: BSD-3-Clause
// Elements of a buffer, named by an n-d index, and where two such namings meet.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/box.h"

namespace reshard {

// Index i, 0 <= i < extents, is the buffer's element offset + sum of strides[d] * i[d]. Counted in
// elements; strides can have any order, none is negative.
struct StridedView {
  std::int64_t offset = 0;
  DimVector extents, strides;

  int dims() const { return extents.size(); }
  std::int64_t count() const { return element_count(extents); }
  // One past the last element. The view is not empty.
  std::int64_t end() const;
  friend bool operator==(const StridedView&, const StridedView&) = default;
};

// The strides of a row-major array.
DimVector row_major(const Shape& shape);
// A box of a row-major buffer.
StridedView view_of(const Box& box, const Shape& buffer);

// Whether no element has two indices: by stride, every dim's elements end before the next step of
// the dim around it. (Views that are one to one in another way are not found to be so.)
bool is_nested(const StridedView& view);

// Where a view has what a part (a nested view) has: for each element of `box`, an index of the
// part, its position in the view, counted row-major, is
//     position + sum of weights[d] * (index[d] - box.lo[d])
// The weight of a dim of extent 1 is 0.
struct Meeting {
  Box box;
  std::int64_t position;
  DimVector weights;
};

// Appends all of them, disjoint, in no particular order. `budget` is lowered by the number of
// contiguous runs that had to be looked at one by one; false if it does not suffice, and then `out`
// is not complete.
bool find_meetings(const StridedView& view, const StridedView& part, std::int64_t& budget,
                   std::vector<Meeting>& out);

}  // namespace reshard
