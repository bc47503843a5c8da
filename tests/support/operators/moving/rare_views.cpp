// SPDX-License-Identifier: BSD-3-Clause
// Views that a trace computes by others.
#include <array>

#include "sim/operators/moving/shapes.h"
#include "sim/operators/rearranged.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

ArrayResults permuted(const Array& in, const DimVector& dims) {
  DimVector strides = dense_strides(in.shape);
  return results(viewed(in, picked(in.shape, dims), picked(strides, dims)));
}

ArrayResults movedim(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int rank = in.shape.size();
  auto from = call.attributes.integers("source"), to = call.attributes.integers("destination");
  call.expect(from.size() == to.size(), "expected as many sources as destinations");
  std::vector<int> at(to_index(rank), -1);
  std::vector<bool> moves(to_index(rank), false);
  for (std::size_t i = 0; i < from.size(); ++i) {
    int source = call.dim_of(from[i], rank), target = call.dim_of(to[i], rank);
    call.expect(rank > 0 && !moves[to_index(source)] && at[to_index(target)] < 0,
                "expected every dim once");
    at[to_index(target)] = source;
    moves[to_index(source)] = true;
  }
  DimVector dims;
  for (int d = 0, next = 0; d < rank; ++d) {
    while (at[to_index(d)] < 0 && moves[to_index(next)]) ++next;
    dims.push_back(at[to_index(d)] < 0 ? next++ : at[to_index(d)]);
  }
  return permuted(in, dims);
}

ArrayResults unflatten(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = call.dim("dim", 0, in.shape.size());
  call.expect(in.shape.size() > 0, "expected a tensor of 1 dim at least");
  std::vector<std::int64_t> sizes(in.shape.begin(), in.shape.begin() + dim);
  Shape pieces = inferred_shape(call, call.attributes.integers("sizes"), in.shape[dim]);
  sizes.insert(sizes.end(), pieces.begin(), pieces.end());
  sizes.insert(sizes.end(), in.shape.begin() + dim + 1, in.shape.end());
  return results(reshaped(in, shape_of(call, sizes)));
}

ArrayResults flatten(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int first = call.dim("start_dim", 0, in.shape.size()),
      last = call.dim("end_dim", -1, in.shape.size());
  call.expect(first <= last, "expected a start_dim no greater than the end_dim");
  if (in.shape.size() == 0) return results(reshaped(in, {1}));
  Shape shape;
  for (int d = 0; d < in.shape.size(); ++d) {
    if (d > first && d <= last)
      shape[first] *= in.shape[d];
    else
      shape.push_back(in.shape[d]);
  }
  return results(reshaped(in, shape));
}

ArrayResults tile(const LocalCall& call) {
  const Array& in = call.tensor(0);
  std::vector<std::int64_t> times = call.attributes.integers("dims");
  while (std::ssize(times) < in.shape.size()) times.insert(times.begin(), 1);
  OpAttributes repeats;
  repeats.set("repeats", OpValue(times));
  return compute("repeat", {call.arguments[0]}, repeats, call.random);
}

constexpr std::array kRareViewsRows{
    OperatorRow{"tile", tile},        OperatorRow{"movedim", movedim},
    OperatorRow{"moveaxis", movedim}, OperatorRow{"unflatten", unflatten},
    OperatorRow{"flatten", flatten},
};

}  // namespace

std::span<const OperatorRow> rare_view_rows() { return kRareViewsRows; }

}  // namespace reshard::sim
