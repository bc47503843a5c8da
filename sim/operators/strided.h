// SPDX-License-Identifier: BSD-3-Clause
// Dense copies of strided views.
#pragma once

#include <vector>

#include "core/base/ids.h"
#include "core/layout/box.h"

namespace reshard::sim {

// Row-major strides of a dense tensor.
inline DimVector dense_strides(const Shape& shape) {
  DimVector out(shape.size(), 1);
  for (int d = shape.size() - 2; d >= 0; --d) out[d] = out[d + 1] * shape[d + 1];
  return out;
}

// Calls visit(offset, step, count) for each run along the last dim, in row-major order.
template <class Visit>
void for_each_run(const Shape& shape, const DimVector& strides, std::int64_t offset,
                  Visit&& visit) {
  if (element_count(shape) == 0) return;
  int last = shape.size() - 1;
  if (last < 0) return visit(offset, std::int64_t{0}, std::int64_t{1});
  DimVector at(last, 0);
  for (;;) {
    visit(offset, strides[last], shape[last]);
    int d = last - 1;
    for (; d >= 0; --d) {
      offset += strides[d];
      if (++at[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
std::vector<T> strided_copy(const std::vector<T>& from, const Shape& shape,
                            const DimVector& strides, std::int64_t offset = 0) {
  std::vector<T> out(to_index(element_count(shape)));
  T* to = out.data();
  for_each_run(shape, strides, offset,
               [&](std::int64_t start, std::int64_t step, std::int64_t count) {
                 const T* at = from.data() + start;
                 for (std::int64_t i = 0; i < count; ++i) *to++ = at[i * step];
               });
  return out;
}

// The values of the given dims, in the order of `dims`.
inline DimVector picked(const DimVector& values, const DimVector& dims) {
  DimVector out;
  for (std::int64_t d : dims) out.push_back(values[static_cast<int>(d)]);
  return out;
}

}  // namespace reshard::sim
