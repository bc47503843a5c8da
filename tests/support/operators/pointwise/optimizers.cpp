// SPDX-License-Identifier: BSD-3-Clause
// Fused Adam and AdamW on lists of parameters, gradients, first and second moments, largest second
// moments (amsgrad) and steps; and the gradient scaler's check for infinities.
#include <array>
#include <cmath>

#include "sim/operators/operator_row.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

struct Adam {
  double rate, beta1, beta2, decay, eps;
  bool is_amsgrad, maximizes, decouples;
};

// Returns the new parameter and updates the moments.
double stepped(const Adam& of, double step, double parameter, double grad, double& first,
               double& second, double* largest) {
  if (of.maximizes) grad = -grad;
  if (of.decouples)
    parameter -= of.rate * of.decay * parameter;
  else
    grad += of.decay * parameter;
  first = of.beta1 * first + (1 - of.beta1) * grad;
  second = of.beta2 * second + (1 - of.beta2) * grad * grad;
  double spread = second;
  if (largest) spread = *largest = std::fmax(*largest, second);
  double bias1 = 1 - std::pow(of.beta1, step), bias2 = 1 - std::pow(of.beta2, step);
  return parameter - of.rate / bias1 * first / (std::sqrt(spread) / std::sqrt(bias2) + of.eps);
}

double number_in(const LocalCall& call, const Array* array, double absent) {
  if (!array) return absent;
  call.expect(array->count() == 1, "expected a tensor of one element");
  return values<double>(*array)[0];
}

template <bool kDecouples>
Adam adam_of(const LocalCall& call, const Array* rate) {
  const OpAttributes& of = call.attributes;
  return {rate ? number_in(call, rate, 0) : call.number("lr", 1e-3),
          call.number("beta1", 0.9),
          call.number("beta2", 0.999),
          call.number("weight_decay", kDecouples ? 1e-2 : 0),
          call.number("eps", 1e-8),
          of.boolean("amsgrad", false),
          of.boolean("maximize", false),
          kDecouples};
}

// The lists of a call: parameters, gradients, first and second moments, largest second moments,
// steps.
std::array<const std::vector<const Array*>*, 6> lists_of(const LocalCall& call, bool is_amsgrad) {
  std::array<const std::vector<const Array*>*, 6> out{};
  for (std::size_t l = 0; l < 6; ++l) {
    out[l] = &call.list(l);
    if (l == 4 && !is_amsgrad) continue;
    call.expect(out[l]->size() == out[0]->size(), "expected lists of equal lengths");
    if (!out[0]->empty()) call.full_list(l);
  }
  return out;
}

// Returns parameters, gradients, moments and largest second moments after the step. As in PyTorch,
// the caller has already incremented the steps. The arguments after the lists are lr if it is a
// tensor, the scale of the gradients, and whether an infinite gradient was found.
template <bool kDecouples, bool kTensorRate>
ArrayResults adam(const LocalCall& call) {
  Adam of = adam_of<kDecouples>(call, kTensorRate ? &call.tensor(6) : nullptr);
  auto lists = lists_of(call, of.is_amsgrad);
  double scale = number_in(call, call.optional_tensor(6 + kTensorRate), 1);
  bool skips = number_in(call, call.optional_tensor(7 + kTensorRate), 0) == 1;
  std::size_t written = of.is_amsgrad ? 5 : 4, count = lists[0]->size();
  ArrayResults out(written * count);
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::vector<double>, 5> x;
    for (std::size_t l = 0; l < written; ++l) {
      call.expect((*lists[l])[i]->shape == (*lists[0])[i]->shape, "expected tensors of one shape");
      x[l] = values<double>(*(*lists[l])[i]);
    }
    double step = number_in(call, (*lists[5])[i], 1);
    for (std::size_t k = 0; k < x[0].size() && !skips; ++k) {
      x[1][k] /= scale;
      x[0][k] =
          stepped(of, step, x[0][k], x[1][k], x[2][k], x[3][k], of.is_amsgrad ? &x[4][k] : nullptr);
    }
    for (std::size_t l = 0; l < written; ++l)
      out[l * count + i] = Array::of((*lists[l])[i]->dtype, (*lists[l])[i]->shape, x[l]);
  }
  return out;
}

// The list times inv_scale, and found_inf, which becomes 1 if an element is not finite.
ArrayResults unscale(const LocalCall& call) {
  Array found = call.tensor(1);
  double by = number_in(call, &call.tensor(2), 1);
  bool is_infinite = number_in(call, &found, 0) != 0;
  ArrayResults out;
  for (const Array* array : call.full_list(0)) {
    std::vector<double> all = values<double>(*array);
    for (double& x : all) {
      is_infinite = is_infinite || !std::isfinite(x);
      x *= by;
    }
    out.emplace_back(Array::of(array->dtype, array->shape, all));
  }
  out.emplace_back(Array::of(found.dtype, found.shape, std::vector<double>{is_infinite ? 1.0 : 0}));
  return out;
}

constexpr std::array kOptimizersRows{
    OperatorRow{"_fused_adam", adam<false, false>},
    OperatorRow{"_fused_adam_", adam<false, false>},
    OperatorRow{"_fused_adamw", adam<true, false>},
    OperatorRow{"_fused_adamw_", adam<true, false>},
    OperatorRow{"_fused_adam.tensor_lr", adam<false, true>},
    OperatorRow{"_fused_adam_.tensor_lr", adam<false, true>},
    OperatorRow{"_fused_adamw.tensor_lr", adam<true, true>},
    OperatorRow{"_fused_adamw_.tensor_lr", adam<true, true>},
    OperatorRow{"_amp_foreach_non_finite_check_and_unscale_", unscale},
};

}  // namespace

std::span<const OperatorRow> optimizer_rows() { return kOptimizersRows; }

}  // namespace reshard::sim
