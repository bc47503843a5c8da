// SPDX-License-Identifier: BSD-3-Clause
// One element of every slice, with its index: the largest, the middle, the most frequent.
#include <algorithm>
#include <array>

#include "sim/operators/dtype_limits.h"
#include "sim/operators/folds/slices.h"
#include "sim/operators/moving/sorted_places.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Value and index of the element that `choose` picks in each slice. An empty slice gives the value
// `absent` and index 0.
template <class T, class Choose>
ArrayResults chosen_of(const LocalCall& call, const SliceDims& dims, T absent, Choose choose) {
  const Array& in = call.tensor(0);
  Slices<T> of = slices<T>(in, dims);
  std::vector<T> found(to_index(dims.count), absent);
  std::vector<Int> places(to_index(dims.count), 0);
  for (std::int64_t i = 0; i < dims.count && dims.length > 0; ++i) {
    std::span<const T> slice = of.slice(i);
    places[to_index(i)] = choose(slice);
    found[to_index(i)] = slice[to_index(places[to_index(i)])];
  }
  Shape shape = dims.reduced(call.attributes.boolean("keepdim", false));
  return results(Array::of(in.dtype, shape, std::move(found)),
                 Array::of(DType::I64, shape, std::move(places)));
}

SliceDims along(const LocalCall& call, std::int64_t absent) {
  const Shape& shape = call.tensor(0).shape;
  return slice_dim(shape, call.dim("dim", absent, shape.size()));
}

template <bool kLargest>
ArrayResults extreme(const LocalCall& call, const SliceDims& dims) {
  DType dtype = call.tensor(0).dtype;
  return visit_computing(dtype, [&](auto t) {
    using T = decltype(t);
    T absent = kLargest ? lowest<T>(dtype) : highest<T>(dtype);
    return chosen_of<T>(call, dims, absent, [](std::span<const T> slice) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < slice.size(); ++i) {
        bool is_better = kLargest ? slice[i] > slice[best] : slice[i] < slice[best];
        if (!is_nan(slice[best]) && (is_better || is_nan(slice[i]))) best = i;
      }
      return static_cast<Int>(best);
    });
  });
}

// max(x), max(x, dim) or max(x, other), depending on the arguments.
template <bool kLargest>
ArrayResults extreme_of_any_kind(const LocalCall& call) {
  bool of_two = call.attributes.has("other") || call.optional_tensor(1);
  std::string_view name = of_two ? kLargest ? "maximum" : "minimum" : kLargest ? "amax" : "amin";
  if (call.attributes.has("dim")) return extreme<kLargest>(call, along(call, 0));
  std::vector<ArrayArgument> arguments(call.arguments.begin(), call.arguments.end());
  return compute(name, arguments, call.attributes, call.random);
}

template <bool kLargest>
ArrayResults place_of_extreme(const LocalCall& call) {
  const Array& in = call.tensor(0);
  bool of_one = call.attributes.has("dim");
  SliceDims dims = of_one ? along(call, 0) : slice_dims(call, in.shape);
  return results(*extreme<kLargest>(call, dims)[1]);
}

// Index of the k-th smallest element, from 1; of the first NaN if `nan_wins` and there is one.
template <class T>
Int kth(std::span<const T> slice, std::int64_t k, bool nan_wins) {
  if (nan_wins)
    for (std::size_t i = 0; i < slice.size(); ++i)
      if (is_nan(slice[i])) return static_cast<Int>(i);
  return sorted_places(slice, false)[to_index(k - 1)];
}

ArrayResults kthvalue(const LocalCall& call) {
  SliceDims dims = along(call, -1);
  std::int64_t k = call.attributes.integer("k");
  call.expect(k >= 1 && k <= dims.length, "expected k from 1 to the length of the dim");
  return visit_computing(call.tensor(0).dtype, [&](auto t) {
    using T = decltype(t);
    return chosen_of<T>(call, dims, T{0}, [&](std::span<const T> s) { return kth(s, k, false); });
  });
}

// The lower of two middle elements. A NaN is the result, or NaNs are ignored if kLeavesNans.
template <bool kLeavesNans>
ArrayResults median(const LocalCall& call) {
  const Array& in = call.tensor(0);
  bool of_dim = call.attributes.has("dim");
  SliceDims dims = of_dim ? along(call, 0) : slice_dims(call, in.shape);
  ArrayResults out = visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    T absent = is_real(in.dtype) ? static_cast<T>(kNan) : lowest<T>(in.dtype);
    return chosen_of<T>(call, dims, absent, [](std::span<const T> slice) {
      std::int64_t count = std::ssize(slice);
      if (kLeavesNans)
        count -= std::count_if(slice.begin(), slice.end(), [](T x) { return is_nan(x); });
      return kth(slice, std::max<std::int64_t>((count + 1) / 2, 1), !kLeavesNans);
    });
  });
  if (!of_dim) out.pop_back();
  return out;
}

// The smallest of the most frequent values, with its last index.
ArrayResults mode(const LocalCall& call) {
  return visit_computing(call.tensor(0).dtype, [&](auto t) {
    using T = decltype(t);
    return chosen_of<T>(call, along(call, -1), T{0}, [](std::span<const T> slice) {
      std::vector<Int> places = sorted_places(slice, false);
      std::size_t most = 0, best = 0;
      for (std::size_t i = 0, run = 0; i < places.size(); ++i) {
        bool goes_on = i > 0 && slice[to_index(places[i])] == slice[to_index(places[i - 1])];
        run = goes_on ? run + 1 : 1;
        if (run > most) most = run, best = i;
      }
      return places[best];
    });
  });
}

constexpr std::array kChoosingRows{
    OperatorRow{"max", extreme_of_any_kind<true>},
    OperatorRow{"min", extreme_of_any_kind<false>},
    OperatorRow{"max.dim", extreme_of_any_kind<true>, 2},
    OperatorRow{"min.dim", extreme_of_any_kind<false>, 2},
    OperatorRow{"argmax", place_of_extreme<true>},
    OperatorRow{"argmin", place_of_extreme<false>},
    OperatorRow{"median", median<false>},
    OperatorRow{"median.dim", median<false>, 2},
    OperatorRow{"nanmedian", median<true>},
    OperatorRow{"nanmedian.dim", median<true>, 2},
    OperatorRow{"kthvalue", kthvalue, 2},
    OperatorRow{"mode", mode, 2},
};

}  // namespace

std::span<const OperatorRow> choosing_rows() { return kChoosingRows; }

}  // namespace reshard::sim
