// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of pointwise operators, times the incoming gradient.
#include <array>
#include <cmath>
#include <numbers>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

double normal_density(double x) {
  return std::exp(-0.5 * x * x) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}
constexpr Pointwise kGeluBackward = gradient([](double g, double x) {
  return g * (0.5 * std::erfc(-x * std::numbers::sqrt2 / 2) + x * normal_density(x));
});
constexpr Pointwise kTanhGeluBackward = gradient([](double g, double x) {
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCube = 0.044715;
  double t = std::tanh(kScale * (x + kCube * x * x * x));
  return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCube * x * x));
});

ArrayResults gelu_backward(const LocalCall& call) {
  bool is_tanh = call.attributes.text("approximate", "none") == "tanh";
  return results(evaluate(call, is_tanh ? kTanhGeluBackward : kGeluBackward));
}

constexpr std::array kPointwiseBackwardRows{
    OperatorRow{"gelu_backward", gelu_backward},
    row("silu_backward", gradient([](double g, double x) {
          double s = sigmoid(x);
          return g * s * (1 + x * (1 - s));
        })),
    row("threshold_backward",
        numbers<2, 1>([](auto g, auto x, auto threshold) { return x <= threshold ? 0 : g; },
                      {{{"threshold", 0}}}, kGradAndSelf)),
};

}  // namespace

std::span<const OperatorRow> pointwise_backward_rows() { return kPointwiseBackwardRows; }

}  // namespace reshard::sim
