// SPDX-License-Identifier: BSD-3-Clause
// Derivatives of pointwise operators, times the incoming gradient.
#include <array>
#include <cmath>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

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

constexpr std::array kRareBackwardRows{
    OperatorRow{"elu_backward", elu_backward},
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
    row("softplus_backward", gradient<2>(
                                 [](double g, double x, double beta, double threshold) {
                                   return x * beta > threshold ? g : g * sigmoid(x * beta);
                                 },
                                 {{{"beta", 1}, {"threshold", 20}}})),
    row("tanh_backward", gradient([](double g, double y) { return g * (1 - y * y); })),
};

}  // namespace

std::span<const OperatorRow> rare_backward_rows() { return kRareBackwardRows; }

}  // namespace reshard::sim
