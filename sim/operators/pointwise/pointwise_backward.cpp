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

constexpr OperandNames kGradAndSelf{"grad_output", "self_tensor", ""};

// Operands are the gradient and the input, by names that no attribute has.
template <int kParameters = 0, class F>
constexpr Pointwise gradient(F f, Parameters parameters = {}) {
  return floating<2, kParameters>(f, parameters, kGradAndSelf);
}

double normal_density(double x) {
  return std::exp(-0.5 * x * x) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}
constexpr Pointwise kGelu = gradient([](double g, double x) {
  return g * (0.5 * std::erfc(-x * std::numbers::sqrt2 / 2) + x * normal_density(x));
});
constexpr Pointwise kTanhGelu = gradient([](double g, double x) {
  constexpr double kScale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kCube = 0.044715;
  double t = std::tanh(kScale * (x + kCube * x * x * x));
  return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kScale * (1 + 3 * kCube * x * x));
});

ArrayResults gelu_backward(const LocalCall& call) {
  bool is_tanh = call.attributes.text("approximate", "none") == "tanh";
  return results(evaluate(call, is_tanh ? kTanhGelu : kGelu));
}

constexpr Parameters kElu{{{"alpha", 1}, {"scale", 1}, {"input_scale", 1}}};
constexpr Pointwise kEluOfSelf = gradient<3>(
    [](double g, double x, double alpha, double scale, double input_scale) {
      return x > 0 ? g * scale : g * scale * alpha * input_scale * std::exp(x * input_scale);
    },
    kElu);
constexpr Pointwise kEluOfResult = gradient<3>(
    [](double g, double y, double alpha, double scale, double input_scale) {
      return y > 0 ? g * scale : g * input_scale * (y + scale * alpha);
    },
    kElu);

ArrayResults elu_backward(const LocalCall& call) {
  bool of_result = call.attributes.boolean("is_result", false);
  return results(evaluate(call, of_result ? kEluOfResult : kEluOfSelf));
}

constexpr Pointwise kLogit =
    gradient([](double g, double x) { return x < 0 || x > 1 ? kNan : g / (x * (1 - x)); });
constexpr Pointwise kClampedLogit = gradient<1>(
    [](double g, double x, double eps) { return x < eps || x > 1 - eps ? 0 : g / (x * (1 - x)); },
    {{{"eps", 0}}});

ArrayResults logit_backward(const LocalCall& call) {
  return results(evaluate(call, call.attributes.has("eps") ? kClampedLogit : kLogit));
}

// Ignores the third tensor, a buffer that the forward operator saves on CPUs.
constexpr Pointwise kLogSigmoid = gradient([](double g, double x) { return g * sigmoid(-x); });

ArrayResults log_sigmoid_backward(const LocalCall& call) {
  return results(evaluate_with(call, kLogSigmoid, {&call.tensor(0), &call.tensor(1)}));
}

constexpr Pointwise kShrink = gradient<1>(
    [](double g, double x, double l) { return x >= -l && x <= l ? 0 : g; }, {{{"lambd", 0.5}}});

constexpr std::array kRows{
    OperatorRow{"elu_backward", elu_backward},
    OperatorRow{"gelu_backward", gelu_backward},
    OperatorRow{"logit_backward", logit_backward},
    row("hardshrink_backward", kShrink),
    row("softshrink_backward", kShrink),
    row("hardsigmoid_backward",
        gradient([](double g, double x) { return x > -3 && x < 3 ? g / 6 : 0; })),
    row("hardswish_backward", gradient([](double g, double x) {
          return x <= -3 ? 0 : x < 3 ? g * (x / 3 + 0.5) : g;
        })),
    row("hardtanh_backward", gradient<2>([](double g, double x, double low,
                                            double high) { return x <= low || x >= high ? 0 : g; },
                                         {{{"min_val", -1}, {"max_val", 1}}})),
    row("leaky_relu_backward",
        gradient<1>([](double g, double x, double slope) { return x > 0 ? g : g * slope; },
                    {{{"negative_slope", 0.01}}})),
    OperatorRow{"log_sigmoid_backward", log_sigmoid_backward},
    row("mish_backward", gradient([](double g, double x) {
          double t = std::tanh(softplus(x));
          return g * (t + x * sigmoid(x) * (1 - t * t));
        })),
    row("sigmoid_backward", gradient([](double g, double y) { return g * (1 - y) * y; })),
    row("silu_backward", gradient([](double g, double x) {
          double s = sigmoid(x);
          return g * s * (1 + x * (1 - s));
        })),
    row("softplus_backward", gradient<2>(
                                 [](double g, double x, double beta, double threshold) {
                                   return x * beta > threshold ? g : g * sigmoid(x * beta);
                                 },
                                 {{{"beta", 1}, {"threshold", 20}}})),
    row("tanh_backward", gradient([](double g, double y) { return g * (1 - y * y); })),
    row("threshold_backward",
        numbers<2, 1>([](auto g, auto x, auto threshold) { return x <= threshold ? 0 : g; },
                      {{{"threshold", 0}}}, kGradAndSelf)),
};

}  // namespace

std::span<const OperatorRow> pointwise_backward_rows() { return kRows; }

}  // namespace reshard::sim
