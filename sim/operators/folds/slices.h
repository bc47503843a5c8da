// SPDX-License-Identifier: BSD-3-Clause
// A tensor as contiguous slices along some of its dims, for reductions, scans, sorts and norms.
#pragma once

#include <span>
#include <vector>

#include "sim/operators/operator_row.h"
#include "sim/operators/strided.h"

namespace reshard::sim {

// Which dims a slice spans.
struct SliceDims {
  Shape shape;                         // of the tensor
  DimVector order;                     // dims: the kept ones, then those of a slice, each ascending
  int kept = 0;                        // number of kept dims
  std::int64_t count = 1, length = 1;  // number of slices, elements per slice

  bool in_order() const {
    for (int d = 0; d < order.size(); ++d)
      if (order[d] != d) return false;
    return true;
  }
  // The shape of one value per slice: without the slices' dims, or with extent 1 for them.
  Shape reduced(bool keepdim) const;
  // The tensor's shape with `length` for the first dim of the slices.
  Shape resized(std::int64_t length) const;
};

// Along the dims of attribute `name`; null, absent or empty means all dims.
SliceDims slice_dims(const LocalCall& call, const Shape& shape, std::string_view name = "dim");
SliceDims slice_dims(const Shape& shape, const std::vector<bool>& in_slice);
// Along one dim.
SliceDims slice_dim(const Shape& shape, int dim);
// Along the last `dims` dims.
SliceDims last_dims(const Shape& shape, int dims);

template <class T>
struct Slices {
  SliceDims dims;
  std::vector<T> values;

  std::span<T> slice(std::int64_t i) {
    return {values.data() + i * dims.length, to_index(dims.length)};
  }
};

template <class T>
Slices<T> slices(const Array& array, const SliceDims& dims) {
  std::vector<T> all = values<T>(array);
  if (dims.in_order()) return {dims, std::move(all)};
  DimVector strides = dense_strides(dims.shape);
  return {dims, strided_copy(all, picked(dims.shape, dims.order), picked(strides, dims.order))};
}

// The tensor from its slices. If they span one dim, they can have another length than before.
template <class T>
Array unsliced(DType dtype, const SliceDims& dims, std::vector<T> values, std::int64_t length) {
  Shape shape = length == dims.length ? dims.shape : dims.resized(length);
  if (dims.in_order()) return Array::of(dtype, shape, std::move(values));
  DimVector inner = dense_strides(picked(shape, dims.order)), strides(shape.size(), 0);
  for (int d = 0; d < shape.size(); ++d) strides[static_cast<int>(dims.order[d])] = inner[d];
  return Array::of(dtype, shape, strided_copy(values, shape, strides));
}
template <class T>
Array unsliced(DType dtype, Slices<T>&& slices) {
  return unsliced(dtype, slices.dims, std::move(slices.values), slices.dims.length);
}

}  // namespace reshard::sim
