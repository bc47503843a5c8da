// SPDX-License-Identifier: BSD-3-Clause
// Max pooling undone: values at the places that they came from.
#include <array>

#include "sim/operators/images/windows.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

// A tensor of `shape` with the values at their indices. Of several values for one index, adds all
// or keeps the last.
Array placed(const LocalCall& call, const Array& from, const Array& indices, const Shape& shape,
             bool adds) {
  call.expect(from.shape == indices.shape, "expected an index for every value");
  std::int64_t outer = outer_count(call, shape, 2),
               inner = shape[shape.size() - 2] * shape[shape.size() - 1],
               each = outer > 0 ? from.count() / outer : 0;
  std::vector<double> x = values<double>(from), out(to_index(computable_count(shape)), 0);
  std::vector<std::int64_t> places = values<std::int64_t>(indices);
  for (std::size_t i = 0; i < x.size(); ++i) {
    call.expect(places[i] >= 0 && places[i] < inner, "expected indices of spatial elements");
    double& to = out[i / to_index(each) * to_index(inner) + to_index(places[i])];
    to = adds ? to + x[i] : x[i];
  }
  return Array::of(from.dtype, shape, out);
}

ArrayResults max_pool2d_backward(const LocalCall& call) {
  return results(placed(call, call.tensor(0), call.tensor(2), call.tensor(1).shape, true));
}

ArrayResults max_unpool2d(const LocalCall& call) {
  Shape shape = call.tensor(0).shape;
  std::vector<std::int64_t> sizes = spatial_sizes(call, "output_size", 2);
  call.expect(shape.size() > 2, "expected a tensor of 3 dims or more");
  for (int d = 0; d < 2; ++d) shape[shape.size() - 2 + d] = sizes[to_index(d)];
  return results(placed(call, call.tensor(0), call.tensor(1), shape, false));
}

constexpr std::array kMaxUnpoolingRows{
    OperatorRow{"max_pool2d_with_indices_backward", max_pool2d_backward},
    OperatorRow{"max_unpool2d", max_unpool2d},
};

}  // namespace

std::span<const OperatorRow> max_unpooling_rows() { return kMaxUnpoolingRows; }

}  // namespace reshard::sim
