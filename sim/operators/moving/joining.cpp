// SPDX-License-Identifier: BSD-3-Clause
// Concatenation.
#include <array>

#include "sim/operators/moving/shapes.h"
#include "sim/operators/pointwise/pointwise.h"
#include "sim/operators/rearranged.h"

namespace reshard::sim {
namespace {

Array joined(const LocalCall& call, const std::vector<Array>& parts, int dim) {
  Shape shape = parts[0].shape;
  DType dtype = parts[0].dtype;
  shape[dim] = 0;
  for (const Array& part : parts) {
    Shape other = part.shape;
    call.expect(other.size() == shape.size(), "expected tensors of equal numbers of dims");
    std::int64_t extent = other[dim];
    other[dim] = shape[dim];
    call.expect(other == shape, "expected tensors of equal sizes but in the joined dim");
    shape[dim] += extent;
    dtype = promoted(dtype, part.dtype);
  }
  Array out = Array::zeros(dtype, shape);
  DimVector strides = dense_strides(shape);
  std::int64_t offset = 0;
  for (const Array& part : parts) {
    write_view(out, cast(part, dtype), strides, offset);
    offset += part.shape[dim] * strides[dim];
  }
  return out;
}

// Tensors of shape (0,) are skipped: they can be joined with any others.
ArrayResults cat(const LocalCall& call) {
  const auto& tensors = call.full_list(0);
  std::vector<Array> parts;
  for (const Array* tensor : tensors)
    if (tensor->shape != Shape{0}) parts.push_back(*tensor);
  if (parts.empty()) return results(*tensors[0]);
  call.expect(parts[0].shape.size() > 0, "expected tensors of 1 dim at least");
  return results(joined(call, parts, call.dim("dim", 0, parts[0].shape.size())));
}

ArrayResults stack(const LocalCall& call) {
  std::vector<Array> parts;
  const auto& tensors = call.full_list(0);
  int dim = call.dim("dim", 0, tensors[0]->shape.size() + 1);
  for (const Array* tensor : tensors) {
    call.expect(tensor->shape == tensors[0]->shape, "expected tensors of one shape");
    parts.push_back(reshaped(*tensor, with_dim(call, tensor->shape, dim, 1)));
  }
  return results(joined(call, parts, dim));
}

constexpr std::array kJoiningRows{
    OperatorRow{"cat", cat},
    OperatorRow{"concat", cat},
    OperatorRow{"stack", stack},
};

}  // namespace

std::span<const OperatorRow> joining_rows() { return kJoiningRows; }

}  // namespace reshard::sim
