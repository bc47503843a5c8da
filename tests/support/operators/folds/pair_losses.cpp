// SPDX-License-Identifier: BSD-3-Clause
// Losses of two tensors, element by element, each with its derivative by the first tensor. The
// third argument is the parameter of the loss.
#include <array>
#include <cmath>

#include "sim/operators/folds/losses.h"
#include "sim/operators/pointwise/arithmetic.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

using Pair = double (*)(double, double, double);
double absolute(double x, double y, double) { return std::fabs(x - y); }
double huber(double x, double y, double p) {
  double d = std::fabs(x - y);
  return d <= p ? 0.5 * d * d : p * (d - 0.5 * p);
}
double huber_slope(double x, double y, double p) { return smaller(larger(x - y, -p), p); }
double smooth(double x, double y, double p) {
  return p == 0 ? std::fabs(x - y) : huber(x, y, p) / p;
}
double smooth_slope(double x, double y, double p) {
  return p == 0 ? double((x > y) - (x < y)) : huber_slope(x, y, p) / p;
}

double parameter(const LocalCall& call) {
  return call.number(call.attributes.has("delta") ? "delta" : "beta", 1);
}

template <Pair kLoss>
ArrayResults pair_loss(const LocalCall& call) {
  return loss_of_pair(call, [p = parameter(call)](double x, double y) { return kLoss(x, y, p); });
}

template <Pair kSlope>
ArrayResults pair_loss_backward(const LocalCall& call) {
  return slope_of_pair(call, [p = parameter(call)](double x, double y) { return kSlope(x, y, p); });
}

constexpr std::array kPairLossesRows{
    OperatorRow{"l1_loss", pair_loss<absolute>},
    OperatorRow{"huber_loss", pair_loss<huber>},
    OperatorRow{"smooth_l1_loss", pair_loss<smooth>},
    OperatorRow{"huber_loss_backward", pair_loss_backward<huber_slope>},
    OperatorRow{"smooth_l1_loss_backward", pair_loss_backward<smooth_slope>},
};

}  // namespace

std::span<const OperatorRow> pair_loss_rows() { return kPairLossesRows; }

}  // namespace reshard::sim
