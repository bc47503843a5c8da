// SPDX-License-Identifier: BSD-3-Clause
// Views of the elements of a buffer by n-d indices, and the elements that two views share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"
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

// The values without the first.
inline DimVector without_first(const DimVector& values) {
  DimVector out;
  for (int d = 1; d < values.size(); ++d) out.push_back(values[d]);
  return out;
}

// The strides of a row-major array.
DimVector row_major(const Shape& shape);
// A box of a row-major buffer as a view.
StridedView view_of(const Box& box, const Shape& buffer);

// Calls visit(offset in a, offset in b, count) for the elements of two views of equal extents, in
// runs that are contiguous in both, as long as possible within one step of an outer dim.
template <class Visit>
void for_each_run(const StridedView& a, const StridedView& b, Visit&& visit);

// Whether no element has two indices, because in every dim all elements of a step come before the
// next step of a dim with a greater stride. (Other views without repeated elements are not
// recognised.)
bool is_nested(const StridedView& view);

// Elements that a view shares with a part (a nested view). The element of the part at an index in
// `box` has this position in the view, counted row-major:
//     position + sum of weights[d] * (index[d] - box.lo[d])
// The weight of a dim of extent 1 is 0.
struct Meeting {
  Box box;
  std::int64_t position;
  DimVector weights;
};

// Appends all meetings, disjoint, in no particular order. `budget` is reduced by the number of
// contiguous runs that are compared one by one. Returns false if it does not suffice; `out` is then
// incomplete.
bool find_meetings(const StridedView& view, const StridedView& part, std::int64_t& budget,
                   std::vector<Meeting>& out);

template <class Visit>
void for_each_run(const StridedView& a, const StridedView& b, Visit&& visit) {
  std::vector<int> order;  // innermost first
  for (int d = a.dims() - 1; d >= 0; --d)
    if (a.extents[d] > 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int x, int y) { return b.strides[x] < b.strides[y]; });
  std::int64_t run = 1;
  std::size_t inner = 0;
  for (; inner < order.size(); ++inner) {
    int d = order[inner];
    if (a.strides[d] != run || b.strides[d] != run) break;
    run *= a.extents[d];
  }
  DimVector at(static_cast<int>(order.size() - inner), 0);
  auto dim = [&](int i) { return order[order.size() - 1 - to_index(i)]; };
  do {
    std::int64_t from = a.offset, to = b.offset;
    for (int i = 0; i < at.size(); ++i) {
      from += at[i] * a.strides[dim(i)];
      to += at[i] * b.strides[dim(i)];
    }
    visit(from, to, run);
  } while (next_index(at, [&](int i) { return a.extents[dim(i)]; }));
}

}  // namespace reshard
