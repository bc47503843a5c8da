// SPDX-License-Identifier: BSD-3-Clause
// Arrays with the elements of another one, rearranged; dtype and bits do not change.
#pragma once

#include "sim/operators/operator_row.h"
#include "sim/operators/strided.h"

namespace reshard::sim {

// The same elements in another shape.
inline Array reshaped(Array array, const Shape& shape) {
  RESHARD_CHECK(computable_count(shape) == array.count(), text(shape));
  array.shape = shape;
  return array;
}

// A dense copy of a strided view.
inline Array viewed(const Array& array, const Shape& shape, const DimVector& strides,
                    std::int64_t offset = 0) {
  Array out = Array::zeros(array.dtype, shape);
  std::visit([&](const auto& from) { out.elements = strided_copy(from, shape, strides, offset); },
             array.elements);
  return out;
}

// Calls visit(from, to) with the elements of two arrays of the same element type.
template <class Visit>
void visit_both(const Array& from, Array& to, Visit&& visit) {
  std::visit(
      [&](const auto& elements) {
        visit(elements, std::get<std::decay_t<decltype(elements)>>(to.elements));
      },
      from.elements);
}

// Writes `part` to the strided view of `whole` that has the shape of `part`.
inline void write_view(Array& whole, const Array& part, const DimVector& strides,
                       std::int64_t offset) {
  visit_both(part, whole, [&](const auto& from, auto& to) {
    auto at = from.begin();
    for_each_run(part.shape, strides, offset,
                 [&](std::int64_t start, std::int64_t step, std::int64_t count) {
                   auto* place = to.data() + start;
                   for (std::int64_t i = 0; i < count; ++i) place[i * step] = *at++;
                 });
  });
}

// `length` elements from `start` on along a dim, every `step`-th.
inline Array narrowed(const Array& array, int dim, std::int64_t start, std::int64_t length,
                      std::int64_t step = 1) {
  DimVector strides = dense_strides(array.shape);
  Shape shape = array.shape;
  shape[dim] = length;
  std::int64_t offset = start * strides[dim];
  strides[dim] *= step;
  return viewed(array, shape, strides, offset);
}

}  // namespace reshard::sim
