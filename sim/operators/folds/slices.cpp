// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/folds/slices.h"

namespace reshard::sim {

Shape SliceDims::reduced(bool keepdim) const {
  if (!keepdim) {
    Shape out;
    for (int i = 0; i < kept; ++i) out.push_back(shape[static_cast<int>(order[i])]);
    return out;
  }
  Shape out = shape;
  for (int i = kept; i < order.size(); ++i) out[static_cast<int>(order[i])] = 1;
  return out;
}

Shape SliceDims::resized(std::int64_t length) const {
  Shape out = shape;
  if (kept < order.size()) out[static_cast<int>(order[kept])] = length;
  return out;
}

SliceDims slice_dims(const Shape& shape, const std::vector<bool>& in_slice) {
  SliceDims out;
  out.shape = shape;
  for (bool sliced : {false, true}) {
    for (int d = 0; d < shape.size(); ++d) {
      if (in_slice[to_index(d)] != sliced) continue;
      out.order.push_back(d);
      (sliced ? out.length : out.count) *= shape[d];
    }
    if (!sliced) out.kept = out.order.size();
  }
  return out;
}

SliceDims slice_dims(const LocalCall& call, const Shape& shape, std::string_view name) {
  auto wanted = call.attributes.optional_integers(name);
  int rank = shape.size();
  std::vector<bool> in_slice(to_index(rank), !wanted || wanted->empty());
  if (wanted)
    for (std::int64_t dim : *wanted) {
      int d = call.dim_of(dim, rank);
      if (d < rank) {
        call.expect(!in_slice[to_index(d)], "expected every dim once");
        in_slice[to_index(d)] = true;
      }
    }
  return slice_dims(shape, in_slice);
}

SliceDims slice_dim(const Shape& shape, int dim) {
  std::vector<bool> in_slice(to_index(shape.size()));
  if (dim < shape.size()) in_slice[to_index(dim)] = true;
  return slice_dims(shape, in_slice);
}

SliceDims last_dims(const Shape& shape, int dims) {
  std::vector<bool> in_slice(to_index(shape.size()));
  for (int d = shape.size() - dims; d < shape.size(); ++d) in_slice[to_index(d)] = true;
  return slice_dims(shape, in_slice);
}

}  // namespace reshard::sim
