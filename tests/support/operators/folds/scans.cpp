// SPDX-License-Identifier: BSD-3-Clause
// Running folds along one dim.
#include <array>

#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

template <class Fold>
ArrayResults scanned(const LocalCall& call, DType dtype, Fold fold) {
  const Array in = cast(call.tensor(0), dtype);
  return visit_computing(dtype, [&](auto t) {
    using T = decltype(t);
    Slices<T> of = slices<T>(in, slice_dim(in.shape, call.dim("dim", 0, in.shape.size())));
    for (std::int64_t i = 0; i < of.dims.count; ++i) {
      std::span<T> slice = of.slice(i);
      for (std::size_t k = 1; k < slice.size(); ++k) slice[k] = fold(slice[k - 1], slice[k]);
    }
    return results(unsliced(dtype, std::move(of)));
  });
}

DType sum_dtype(const LocalCall& call) {
  DType own = call.tensor(0).dtype;
  return call.dtype_or(is_real(own) ? own : DType::I64);
}

ArrayResults cumsum(const LocalCall& call) {
  return scanned(call, sum_dtype(call), [](auto total, auto x) { return plus(total, x); });
}
ArrayResults cumprod(const LocalCall& call) {
  return scanned(call, sum_dtype(call), [](auto total, auto x) { return times(total, x); });
}
ArrayResults logcumsumexp(const LocalCall& call) {
  DType dtype = call.tensor(0).dtype;
  call.expect(is_real(dtype), "expected a floating tensor");
  return scanned(call, dtype, [](auto total, auto x) {
    return static_cast<decltype(x)>(log_of_sum(static_cast<double>(total), static_cast<double>(x)));
  });
}

// The largest or smallest element so far, and its index; the latest of equals.
template <bool kLargest>
ArrayResults extreme_so_far(const LocalCall& call) {
  const Array& in = call.tensor(0);
  return visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    Slices<T> of = slices<T>(in, slice_dim(in.shape, call.dim("dim", 0, in.shape.size())));
    std::vector<Int> places(of.values.size(), 0);
    for (std::int64_t i = 0; i < of.dims.count; ++i) {
      std::span<T> slice = of.slice(i);
      std::span<Int> place(places.data() + i * of.dims.length, slice.size());
      for (std::size_t k = 1; k < slice.size(); ++k) {
        bool is_better = kLargest ? slice[k] >= slice[k - 1] : slice[k] <= slice[k - 1];
        bool moves = is_nan(slice[k]) || (!is_nan(slice[k - 1]) && is_better);
        place[k] = moves ? static_cast<Int>(k) : place[k - 1];
        if (!moves) slice[k] = slice[k - 1];
      }
    }
    Array found = unsliced(DType::I64, of.dims, std::move(places), of.dims.length);
    return results(unsliced(in.dtype, std::move(of)), std::move(found));
  });
}

constexpr std::array kScansRows{
    OperatorRow{"cumsum", cumsum},
    OperatorRow{"cumprod", cumprod},
    OperatorRow{"logcumsumexp", logcumsumexp},
    OperatorRow{"cummax", extreme_so_far<true>, 2},
    OperatorRow{"cummin", extreme_so_far<false>, 2},
};

}  // namespace

std::span<const OperatorRow> scan_rows() { return kScansRows; }

}  // namespace reshard::sim
