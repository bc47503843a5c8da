// SPDX-License-Identifier: BSD-3-Clause
// Sums, means and norms of slices. An empty slice gives the identity of the fold, also where
// PyTorch refuses it, because a rank with an empty shard must contribute nothing.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/attributes.h"
#include "sim/operators/folds/reduced.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Integers are summed in i64.
DType sum_dtype(const LocalCall& call, const Array& in) {
  return call.dtype_or(is_real(in.dtype) ? in.dtype : DType::I64);
}

template <class Fold>
ArrayResults folded(const LocalCall& call, std::int64_t start, Fold fold) {
  DType dtype = sum_dtype(call, call.tensor(0));
  const Array in = cast(call.tensor(0), dtype);
  return visit_computing(dtype, [&](auto t) {
    using T = decltype(t);
    return results(reduced<T>(call, in, dtype, [&](std::span<const T> slice) {
      T total = static_cast<T>(start);
      for (T x : slice) total = fold(total, x);
      return total;
    }));
  });
}

ArrayResults sum(const LocalCall& call) {
  return folded(call, 0, [](auto total, auto x) { return plus(total, x); });
}
ArrayResults nansum(const LocalCall& call) {
  return folded(call, 0, [](auto total, auto x) { return is_nan(x) ? total : plus(total, x); });
}
ArrayResults prod(const LocalCall& call) {
  return folded(call, 1, [](auto total, auto x) { return times(total, x); });
}

ArrayResults mean(const LocalCall& call) {
  return results(reduced<double>(call, call.tensor(0), floating_dtype(call),
                                 [](std::span<const double> slice) {
                                   return sum_of(slice) / static_cast<double>(slice.size());
                                 }));
}

// The sum of |x|^p.
double power_sum(std::span<const double> slice, double p) {
  double total = 0;
  for (double x : slice) {
    double a = std::fabs(x);
    total += p == 2 ? a * a : p == 1 ? a : p == 0 ? a != 0 : std::pow(a, p);
  }
  return total;
}

double norm_of(std::span<const double> slice, double p) {
  if (std::isinf(p)) {
    double best = p > 0 ? 0 : kInfinity;
    for (double x : slice) best = p > 0 ? larger(best, std::fabs(x)) : smaller(best, std::fabs(x));
    return best;
  }
  double total = power_sum(slice, p);
  return p == 0 || p == 1 ? total : p == 2 ? std::sqrt(total) : std::pow(total, 1 / p);
}

template <double (*kFunction)(std::span<const double>, double)>
ArrayResults norm(const LocalCall& call) {
  double p = norm_order(call.attributes);
  return results(reduced<double>(call, call.tensor(0), floating_dtype(call),
                                 [&](std::span<const double> s) { return kFunction(s, p); }));
}

constexpr std::array kReductionsRows{
    OperatorRow{"sum", sum},
    OperatorRow{"nansum", nansum},
    OperatorRow{"prod", prod},
    OperatorRow{"mean", mean},
    OperatorRow{"linalg_vector_norm", norm<norm_of>},
    OperatorRow{"norm", norm<norm_of>},
    OperatorRow{"linalg__powsum", norm<power_sum>},
};

}  // namespace

std::span<const OperatorRow> reduction_rows() { return kReductionsRows; }

}  // namespace reshard::sim
