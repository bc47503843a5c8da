// SPDX-License-Identifier: BSD-3-Clause
// Reductions to one value per slice. An empty slice gives the identity of the fold, also where
// PyTorch refuses it, because a rank with an empty shard must contribute nothing.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/operators/dtype_limits.h"
#include "sim/operators/folds/slices.h"
#include "sim/operators/pointwise/arithmetic.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// Applies `function` to each slice.
template <class T, class Function>
Array reduced(const LocalCall& call, const Array& in, DType dtype, Function function) {
  Slices<T> of = slices<T>(in, slice_dims(call, in.shape));
  using Result = decltype(function(of.slice(0)));
  std::vector<Result> out(to_index(of.dims.count));
  for (std::int64_t i = 0; i < of.dims.count; ++i) out[to_index(i)] = function(of.slice(i));
  return Array::of(dtype, of.dims.reduced(call.attributes.boolean("keepdim", false)),
                   std::move(out));
}

// Integers are summed in i64.
DType sum_dtype(const LocalCall& call, const Array& in) {
  return call.dtype().value_or(is_real(in.dtype) ? in.dtype : DType::I64);
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

DType floating_dtype(const LocalCall& call) {
  DType dtype = call.dtype().value_or(call.tensor(0).dtype);
  call.expect(is_real(dtype), "expected a floating tensor");
  return dtype;
}

double sum_of(std::span<const double> slice) {
  double total = 0;
  for (double x : slice) total += x;
  return total;
}

ArrayResults mean(const LocalCall& call) {
  return results(reduced<double>(call, call.tensor(0), floating_dtype(call),
                                 [](std::span<const double> slice) {
                                   return sum_of(slice) / static_cast<double>(slice.size());
                                 }));
}

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
  double p = call.number(call.attributes.has("p") ? "p" : "ord", 2);
  return results(reduced<double>(call, call.tensor(0), floating_dtype(call),
                                 [&](std::span<const double> s) { return kFunction(s, p); }));
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
  return results(spread<kRoot>(call), *mean(call)[0]);
}

constexpr std::array kRows{
    OperatorRow{"sum", sum},
    OperatorRow{"nansum", nansum},
    OperatorRow{"prod", prod},
    OperatorRow{"mean", mean},
    OperatorRow{"amax", extreme<true>},
    OperatorRow{"amin", extreme<false>},
    OperatorRow{"aminmax", aminmax, 2},
    OperatorRow{"any", any_or_all<true>},
    OperatorRow{"all", any_or_all<false>},
    OperatorRow{"count_nonzero", count_nonzero},
    OperatorRow{"logsumexp", logsumexp},
    OperatorRow{"linalg_vector_norm", norm<norm_of>},
    OperatorRow{"norm", norm<norm_of>},
    OperatorRow{"linalg__powsum", norm<power_sum>},
    OperatorRow{"var", variance<false>},
    OperatorRow{"std", variance<true>},
    OperatorRow{"var_mean", variance_and_mean<false>, 2},
    OperatorRow{"std_mean", variance_and_mean<true>, 2},
};

}  // namespace

std::span<const OperatorRow> reduction_rows() { return kRows; }

}  // namespace reshard::sim
