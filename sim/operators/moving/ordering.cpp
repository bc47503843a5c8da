// SPDX-License-Identifier: BSD-3-Clause
// Sorting: elements of a slice with their indices.
#include <array>

#include "sim/operators/folds/slices.h"
#include "sim/operators/moving/sorted_places.h"

namespace reshard::sim {
namespace {

// Values and indices of `length` elements of each slice of a dim, in the order that `pick` returns.
template <class T, class Pick>
ArrayResults picked_of(const LocalCall& call, int dim, std::int64_t length, Pick pick) {
  const Array& in = call.tensor(0);
  Slices<T> of = slices<T>(in, slice_dim(in.shape, dim));
  std::vector<T> found;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < of.dims.count; ++i) {
    std::span<const T> slice = of.slice(i);
    std::vector<std::int64_t> chosen = pick(slice);
    for (std::int64_t k = 0; k < length; ++k) {
      std::int64_t place = chosen[to_index(k)];
      places.push_back(place);
      found.push_back(slice[to_index(place)]);
    }
  }
  return results(unsliced(in.dtype, of.dims, std::move(found), length),
                 unsliced(DType::I64, of.dims, std::move(places), length));
}

ArrayResults sort(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = call.dim("dim", -1, in.shape.size());
  bool descending = call.attributes.boolean("descending", false);
  std::int64_t length = in.shape.size() ? in.shape[dim] : 1;
  return visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    return picked_of<T>(call, dim, length,
                        [&](std::span<const T> slice) { return sorted_places(slice, descending); });
  });
}
ArrayResults argsort(const LocalCall& call) { return results(*sort(call)[1]); }

ArrayResults topk(const LocalCall& call) {
  const Array& in = call.tensor(0);
  int dim = call.dim("dim", -1, in.shape.size());
  std::int64_t k = call.attributes.integer("k"), length = in.shape.size() ? in.shape[dim] : 1;
  call.expect(k >= 0 && k <= length, "expected k from 0 to the length of the dim");
  return visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    return picked_of<T>(call, dim, k, [&](std::span<const T> slice) {
      return sorted_places(slice, call.attributes.boolean("largest", true));
    });
  });
}

constexpr std::array kOrderingRows{
    OperatorRow{"sort", sort, 2},
    OperatorRow{"argsort", argsort},
    OperatorRow{"topk", topk, 2},
};

}  // namespace

std::span<const OperatorRow> ordering_rows() { return kOrderingRows; }

}  // namespace reshard::sim
