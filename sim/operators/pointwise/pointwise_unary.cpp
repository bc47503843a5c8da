// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of one tensor.
#include <array>
#include <cmath>
#include <numbers>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

double normal_share(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }
double tanh_gelu(double x) {
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  return 0.5 * x * (1 + std::tanh(kScale * (x + 0.044715 * x * x * x)));
}

constexpr Pointwise kGelu = reals<1>([](double x) { return x * normal_share(x); });
constexpr Pointwise kTanhGelu = reals<1>([](double x) { return tanh_gelu(x); });

ArrayResults gelu(const LocalCall& call) {
  bool is_tanh = call.attributes.text("approximate", "none") == "tanh";
  return results(evaluate(call, is_tanh ? kTanhGelu : kGelu));
}

constexpr Pointwise kSame = numbers<1>([](auto x) { return x; });

constexpr std::array kPointwiseUnaryRows{
    row("abs", numbers<1>([](auto x) { return x < 0 || (x == 0) ? negated(x) + 0 : x; })),
    row("_conj", kSame),
    row("conj_physical", kSame),
    row("cos", floating<1>([](double x) { return std::cos(x); })),
    row("exp", floating<1>([](double x) { return std::exp(x); })),
    row("log1p", floating<1>([](double x) { return std::log1p(x); })),
    row("neg", numbers<1>([](auto x) { return negated(x); })),
    row("positive", kSame),
    row("reciprocal", floating<1>([](double x) { return 1 / x; })),
    row("relu", numbers<1>([](auto x) { return is_nan(x) || x > 0 ? x : 0; })),
    row("rsqrt", floating<1>([](double x) { return 1 / std::sqrt(x); })),
    row("sigmoid", floating<1>([](double x) { return sigmoid(x); })),
    row("silu", reals<1>([](double x) { return x * sigmoid(x); })),
    row("sin", floating<1>([](double x) { return std::sin(x); })),
    row("sqrt", floating<1>([](double x) { return std::sqrt(x); })),
    OperatorRow{"gelu", gelu},
};

}  // namespace

std::span<const OperatorRow> pointwise_unary_rows() { return kPointwiseUnaryRows; }

}  // namespace reshard::sim
