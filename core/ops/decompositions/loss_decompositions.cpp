// SPDX-License-Identifier: BSD-3-Clause
// Losses per element, kept, averaged or summed, and their gradients.
#include "core/base/errors.h"
#include "core/ops/attributes.h"
#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

Reduction reduction_of(const Steps& s) {
  (void)s.attributes().integer("reduction", 1);  // what is no integer is refused without a name
  try {
    return loss_reduction(s.attributes());
  } catch (const InputError& error) {
    s.refuse(error.what());
  }
}

void give_reduced(Steps& s, StepTensor loss) {
  const Reduction reduction = reduction_of(s);
  s.give(reduction == Reduction::Mean  ? s("mean", {loss})
         : reduction == Reduction::Sum ? s("sum", {loss})
                                       : loss);
}

// The factor of one element's gradient.
double share(const Steps& s, StepTensor of, double factor = 1) {
  return reduction_of(s) == Reduction::Mean ? factor / s.count_of(of) : factor;
}

void mse_loss_backward(Steps& s) {
  StepTensor difference = s("sub.Tensor", {s.in(1), s.in(2)});
  StepTensor scaled = s("mul.Tensor", {difference}, {{"other", number(share(s, s.in(1), 2))}});
  s.give(s("mul.Tensor", {scaled, s.in(0)}));
}

void smooth_l1_loss(Steps& s) {
  double beta = s.attributes().number("beta", 1);
  StepTensor far = s("abs", {s("sub.Tensor", {s.in(0), s.in(1)})});
  StepTensor is_near = s("lt.Scalar", {far}, {{"other", number(beta)}});
  StepTensor square = s("pow.Tensor_Scalar", {far}, {{"exponent", integer(2)}});
  StepTensor half = s("mul.Tensor", {square}, {{"other", number(0.5)}});
  StepTensor near = s("div.Tensor", {half}, {{"other", number(beta)}});
  StepTensor line = s("sub.Tensor", {far}, {{"other", number(0.5 * beta)}});
  give_reduced(s, s("where.self", {is_near, near, line}));
}

void smooth_l1_loss_backward(Steps& s) {
  double beta = s.attributes().number("beta", 1);
  StepTensor difference = s("sub.Tensor", {s.in(1), s.in(2)});
  StepTensor far = s("abs", {difference});
  StepTensor grad = s("mul.Tensor", {s.in(0)}, {{"other", number(share(s, s.in(1)))}});
  StepTensor is_near = s("lt.Scalar", {far}, {{"other", number(beta)}});
  StepTensor product = s("mul.Tensor", {grad, difference});
  StepTensor near = s("div.Tensor", {product}, {{"other", number(beta)}});
  StepTensor line = s("mul.Tensor", {grad, s("sign", {difference})});
  s.give(s("where.self", {is_near, near, line}));
}

void huber_loss(Steps& s) {
  double delta = s.attributes().number("delta", 1);
  StepTensor far = s("abs", {s("sub.Tensor", {s.in(0), s.in(1)})});
  StepTensor is_near = s("lt.Scalar", {far}, {{"other", number(delta)}});
  StepTensor half = s("mul.Tensor", {far}, {{"other", number(0.5)}});
  StepTensor near = s("mul.Tensor", {half, far});
  StepTensor shifted = s("sub.Tensor", {far}, {{"other", number(0.5 * delta)}});
  StepTensor line = s("mul.Tensor", {shifted}, {{"other", number(delta)}});
  give_reduced(s, s("where.self", {is_near, near, line}));
}

void huber_loss_backward(Steps& s) {
  double delta = s.attributes().number("delta", 1), norm = share(s, s.in(1));
  auto times = [&](StepTensor tensor, double factor) {
    return s("mul.Tensor", {tensor}, {{"other", number(factor)}});
  };
  StepTensor difference = s("sub.Tensor", {s.in(1), s.in(2)});
  StepTensor below = s("lt.Scalar", {difference}, {{"other", number(-delta)}});
  StepTensor least = times(times(s.in(0), -norm), delta);
  StepTensor above = s("gt.Scalar", {difference}, {{"other", number(delta)}});
  StepTensor most = times(times(s.in(0), norm), delta);
  StepTensor near = s("mul.Tensor", {times(difference, norm), s.in(0)});
  s.give(s("where.self", {below, least, s("where.self", {above, most, near})}));
}

void binary_cross_entropy_backward(Steps& s) {
  StepTensor grad = s.in(0), probability = s.in(1), weight = s.in(3);
  StepTensor top = s("mul.Tensor", {grad, s("sub.Tensor", {probability, s.in(2)})});
  StepTensor other = s("rsub.Scalar", {probability}, {{"other", integer(1)}});
  StepTensor variance = s("mul.Tensor", {probability, other});
  StepTensor bottom = s("clamp", {variance}, {{"min", number(1e-12)}});
  StepTensor out = s("div.Tensor", {top, bottom});
  if (weight != kNoTensor) out = s("mul.Tensor", {out, weight});
  if (reduction_of(s) == Reduction::Mean)
    out = s("div.Tensor", {out}, {{"other", number(s.count_of(probability))}});
  s.give(out);
}

void soft_margin_loss_backward(Steps& s) {
  StepTensor signed_grad = s("mul.Tensor", {s.in(2), s.in(0)});
  StepTensor sure = s("sigmoid", {s("mul.Tensor", {s.in(2), s.in(1)})});
  StepTensor slope = s("sub.Tensor", {sure}, {{"other", integer(1)}});
  StepTensor out = s("mul.Tensor", {signed_grad, slope});
  if (reduction_of(s) == Reduction::Mean)
    out = s("div.Tensor", {out}, {{"other", number(s.count_of(s.in(1)))}});
  s.give(out);
}

constexpr Decomposition kLossDecompositions[]{
    {"mse_loss_backward", mse_loss_backward},
    {"smooth_l1_loss", smooth_l1_loss},
    {"smooth_l1_loss_backward", smooth_l1_loss_backward},
    {"huber_loss", huber_loss},
    {"huber_loss_backward", huber_loss_backward},
    {"binary_cross_entropy_backward", binary_cross_entropy_backward},
    {"soft_margin_loss_backward", soft_margin_loss_backward},
};

}  // namespace

std::span<const Decomposition> loss_decompositions() { return kLossDecompositions; }

}  // namespace reshard
