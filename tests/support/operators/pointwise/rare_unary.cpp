// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of one tensor.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;
constexpr double kHalfTurn = std::numbers::pi;

constexpr Pointwise kNot = integers<1>([](Int x) { return ~x; });
constexpr Pointwise kNotTruth = integers<1>([](Int x) { return Int{x == 0}; });
constexpr Pointwise kLogitOf = floating<1>([](double x) { return std::log(x / (1 - x)); });
constexpr Pointwise kClampedLogitOf = floating<1, 1>(
    [](double x, double eps) {
      double z = std::fmin(std::fmax(x, eps), 1 - eps);
      return std::log(z / (1 - z));
    },
    {{{"eps", 0}}});

ArrayResults bitwise_not(const LocalCall& call) {
  bool is_truth = call.tensor(0).dtype == DType::Bool;
  return results(evaluate(call, is_truth ? kNotTruth : kNot));
}

ArrayResults logit(const LocalCall& call) {
  return results(evaluate(call, call.attributes.has("eps") ? kClampedLogitOf : kLogitOf));
}

// By default infinity becomes the largest number of the dtype.
ArrayResults nan_to_num(const LocalCall& call) {
  const Array& in = call.tensor(0);
  if (!is_real(in.dtype)) return results(in);
  double largest = in.dtype == DType::F64    ? std::numeric_limits<double>::max()
                   : in.dtype == DType::F16  ? 65504
                   : in.dtype == DType::BF16 ? 0x1.FEp127
                                             : std::numeric_limits<float>::max();
  double nan = call.number("nan", 0), above = call.number("posinf", largest),
         below = call.number("neginf", -largest);
  std::vector<double> out = values<double>(in);
  for (double& x : out)
    x = std::isnan(x) ? nan : x == kInfinity ? above : x == -kInfinity ? below : x;
  return results(Array::of(in.dtype, in.shape, out));
}

double rounded_to(double x, double decimals) {
  if (decimals == 0) return std::nearbyint(x);
  double scale = std::pow(10, std::fabs(decimals));
  return decimals > 0 ? std::nearbyint(x * scale) / scale : std::nearbyint(x / scale) * scale;
}

template <class T>
T rounded_number(T x, [[maybe_unused]] T decimals) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return rounded_to(x, decimals);
}

// Rounds floats by a function; integers do not change.
template <double (*kFunction)(double)>
constexpr Pointwise whole_kept() {
  return numbers<1>([](auto x) {
    if constexpr (std::is_integral_v<decltype(x)>)
      return x;
    else
      return kFunction(x);
  });
}

constexpr Pointwise kSign = numbers<1>([](auto x) { return (x > 0) - (x < 0); });
constexpr Pointwise kCeil = whole_kept<std::ceil>(), kFloor = whole_kept<std::floor>(),
                    kTrunc = whole_kept<std::trunc>();
constexpr Parameters kEluParameters{{{"alpha", 1}, {"scale", 1}, {"input_scale", 1}}};

constexpr std::array kRareUnaryRows{
    row("acos", floating<1>([](double x) { return std::acos(x); })),
    row("acosh", floating<1>([](double x) { return std::acosh(x); })),
    row("angle", floating<1>([](double x) { return std::isnan(x) ? x
                                                   : x < 0       ? kHalfTurn
                                                                 : 0.0; })),
    row("asin", floating<1>([](double x) { return std::asin(x); })),
    row("asinh", floating<1>([](double x) { return std::asinh(x); })),
    row("atan", floating<1>([](double x) { return std::atan(x); })),
    row("atanh", floating<1>([](double x) { return std::atanh(x); })),
    row("ceil", kCeil),
    row("celu", reals<1, 1>([](double x, double a) { return x > 0 ? x : a * std::expm1(x / a); },
                            {{{"alpha", 1}}})),
    row("cosh", floating<1>([](double x) { return std::cosh(x); })),
    row("deg2rad", floating<1>([](double x) { return x * (kHalfTurn / 180); })),
    row("elu", reals<1, 3>(
                   [](double x, double alpha, double scale, double input_scale) {
                     return x > 0 ? scale * x : scale * alpha * std::expm1(x * input_scale);
                   },
                   kEluParameters)),
    row("erf", floating<1>([](double x) { return std::erf(x); })),
    row("erfc", floating<1>([](double x) { return std::erfc(x); })),
    row("exp2", floating<1>([](double x) { return std::exp2(x); })),
    row("expm1", floating<1>([](double x) { return std::expm1(x); })),
    row("floor", kFloor),
    row("frac", reals<1>([](double x) { return x - std::trunc(x); })),
    row("hardshrink", reals<1, 1>([](double x, double l) { return x >= -l && x <= l ? 0 : x; },
                                  {{{"lambd", 0.5}}})),
    row("hardsigmoid", reals<1>([](double x) { return smaller(larger(x + 3, 0.0), 6.0) / 6; })),
    row("hardswish", reals<1>([](double x) { return x * smaller(larger(x + 3, 0.0), 6.0) / 6; })),
    row("hardtanh",
        numbers<1, 2>([](auto x, auto low, auto high) { return smaller(larger(x, low), high); },
                      {{{"min_val", -1}, {"max_val", 1}}})),
    row("isfinite", truth<1>([](auto x) { return std::isfinite(static_cast<double>(x)); })),
    row("isinf", truth<1>([](auto x) { return std::isinf(static_cast<double>(x)); })),
    row("isnan", truth<1>([](auto x) { return is_nan(x); })),
    row("isneginf", truth<1>([](auto x) { return static_cast<double>(x) == -kInfinity; })),
    row("isposinf", truth<1>([](auto x) { return static_cast<double>(x) == kInfinity; })),
    row("leaky_relu", reals<1, 1>([](double x, double slope) { return x > 0 ? x : x * slope; },
                                  {{{"negative_slope", 0.01}}})),
    row("log", floating<1>([](double x) { return std::log(x); })),
    row("log10", floating<1>([](double x) { return std::log10(x); })),
    row("log2", floating<1>([](double x) { return std::log2(x); })),
    row("log_sigmoid", reals<1>([](double x) { return -softplus(-x); })),
    row("logical_not", truth<1>([](auto x) { return x == 0; })),
    row("mish", reals<1>([](double x) { return x * std::tanh(softplus(x)); })),
    row("rad2deg", floating<1>([](double x) { return x * (180 / kHalfTurn); })),
    row("relu6",
        numbers<1>([](auto x) { return smaller(larger(x, decltype(x){0}), decltype(x){6}); })),
    row("round",
        numbers<1, 1>([](auto x, auto d) { return rounded_number(x, d); }, {{{"decimals", 0}}})),
    row("selu", reals<1>([](double x) {
          constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
          return kScale * (x > 0 ? x : kAlpha * std::expm1(x));
        })),
    row("sgn", kSign),
    row("sign", kSign),
    row("signbit", truth<1>([](auto x) { return std::signbit(static_cast<double>(x)); })),
    row("sinc", floating<1>([](double x) {
          return x == 0 ? 1 : std::sin(kHalfTurn * x) / (kHalfTurn * x);
        })),
    row("sinh", floating<1>([](double x) { return std::sinh(x); })),
    row("softplus", reals<1, 2>(
                        [](double x, double beta, double threshold) {
                          return x * beta > threshold ? x : std::log1p(std::exp(x * beta)) / beta;
                        },
                        {{{"beta", 1}, {"threshold", 20}}})),
    row("softshrink",
        reals<1, 1>([](double x, double l) { return x > l    ? x - l
                                                    : x < -l ? x + l
                                                             : x * 0; },
                    {{{"lambd", 0.5}}})),
    row("square", numbers<1>([](auto x) { return times(x, x); })),
    row("tan", floating<1>([](double x) { return std::tan(x); })),
    row("tanh", floating<1>([](double x) { return std::tanh(x); })),
    row("threshold",
        numbers<1, 2>([](auto x, auto threshold, auto value) { return x <= threshold ? value : x; },
                      {{{"threshold", 0}, {"value", 0}}})),
    row("trunc", kTrunc),
    OperatorRow{"bitwise_not", bitwise_not},
    OperatorRow{"logit", logit},
    OperatorRow{"nan_to_num", nan_to_num},
};

}  // namespace

std::span<const OperatorRow> rare_unary_rows() { return kRareUnaryRows; }

}  // namespace reshard::sim
