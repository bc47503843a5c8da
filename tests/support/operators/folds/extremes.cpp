// SPDX-License-Identifier: BSD-3-Clause
// Reductions other than sums, means and norms.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/operators/dtype_limits.h"
#include "sim/operators/folds/reduced.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

template <bool kLargest>
Array extreme_values(const LocalCall& call) {
  const Array& in = call.tensor(0);
  return visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    T start = kLargest ? lowest<T>(in.dtype) : highest<T>(in.dtype);
    return reduced<T>(call, in, in.dtype, [&](std::span<const T> slice) {
      T best = start;
      for (T x : slice) best = kLargest ? larger(best, x) : smaller(best, x);
      return best;
    });
  });
}
template <bool kLargest>
ArrayResults extreme(const LocalCall& call) {
  return results(extreme_values<kLargest>(call));
}
ArrayResults aminmax(const LocalCall& call) {
  return results(extreme_values<false>(call), extreme_values<true>(call));
}

template <bool kAny>
ArrayResults any_or_all(const LocalCall& call) {
  const Array& in = call.tensor(0);
  DType dtype = in.dtype == DType::U8 ? DType::U8 : DType::Bool;
  return visit_computing(in.dtype, [&](auto t) {
    using T = decltype(t);
    return results(reduced<T>(call, in, dtype, [](std::span<const T> slice) {
      for (T x : slice)
        if ((x != 0) == kAny) return Int{kAny};
      return Int{!kAny};
    }));
  });
}

ArrayResults count_nonzero(const LocalCall& call) {
  return results(
      reduced<double>(call, call.tensor(0), DType::I64, [](std::span<const double> slice) {
        return static_cast<Int>(
            std::count_if(slice.begin(), slice.end(), [](double x) { return x != 0; }));
      }));
}

double log_sum_exp(std::span<const double> slice) {
  double high = -kInfinity, total = 0;
  for (double x : slice) high = larger(high, x);
  if (std::isinf(high) || std::isnan(high)) return high;
  for (double x : slice) total += std::exp(x - high);
  return high + std::log(total);
}

ArrayResults logsumexp(const LocalCall& call) {
  DType dtype = call.tensor(0).dtype;
  return results(
      reduced<double>(call, call.tensor(0), is_real(dtype) ? dtype : DType::F32, log_sum_exp));
}

double correction(const LocalCall& call) {
  if (!call.attributes.boolean("unbiased", true)) return 0;
  return call.number("correction", 1);
}

template <bool kRoot>
Array spread(const LocalCall& call) {
  double less = correction(call);
  return reduced<double>(
      call, call.tensor(0), floating_dtype(call), [&](std::span<const double> slice) {
        double n = static_cast<double>(slice.size()), middle = sum_of(slice) / n, total = 0;
        for (double x : slice) total += (x - middle) * (x - middle);
        double variance = total / std::fmax(n - less, 0);
        return kRoot ? std::sqrt(variance) : variance;
      });
}
template <bool kRoot>
ArrayResults variance(const LocalCall& call) {
  return results(spread<kRoot>(call));
}
template <bool kRoot>
ArrayResults variance_and_mean(const LocalCall& call) {
  return results(spread<kRoot>(call),
                 *compute("mean", {call.arguments.begin(), call.arguments.end()}, call.attributes,
                          call.random)[0]);
}

constexpr std::array kExtremesRows{
    OperatorRow{"amax", extreme<true>},
    OperatorRow{"amin", extreme<false>},
    OperatorRow{"aminmax", aminmax, 2},
    OperatorRow{"any", any_or_all<true>},
    OperatorRow{"all", any_or_all<false>},
    OperatorRow{"count_nonzero", count_nonzero},
    OperatorRow{"logsumexp", logsumexp},
    OperatorRow{"var", variance<false>},
    OperatorRow{"std", variance<true>},
    OperatorRow{"var_mean", variance_and_mean<false>, 2},
    OperatorRow{"std_mean", variance_and_mean<true>, 2},
};

}  // namespace

std::span<const OperatorRow> extreme_rows() { return kExtremesRows; }

}  // namespace reshard::sim
