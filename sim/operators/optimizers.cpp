// SPDX-License-Identifier: BSD-3-Clause
// Fused Adam and AdamW, in place: lists of parameters, gradients, two moments, largest second
// moments (amsgrad) and steps.
#include <array>
#include <cmath>

#include "sim/operators/operator_row.h"

namespace reshard::sim {
namespace {

struct Adam {
  double rate, beta1, beta2, decay, eps;
  bool is_amsgrad, maximizes, decouples;
};

// The new parameter, and the moments in place.
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

// The lists after the step: parameters, gradients, moments, largest. Steps were counted up before,
// by the caller, as in PyTorch.
template <bool kDecouples>
ArrayResults adam(const LocalCall& call) {
  const OpAttributes& attributes = call.attributes;
  Adam of{attributes.has("lr") ? attributes.number("lr") : 1e-3,
          call.number("beta1", 0.9),
          call.number("beta2", 0.999),
          call.number("weight_decay", kDecouples ? 1e-2 : 0),
          call.number("eps", 1e-8),
          attributes.boolean("amsgrad", false),
          attributes.boolean("maximize", false),
          kDecouples};
  std::array<const std::vector<const Array*>*, 6> lists{};
  for (std::size_t l = 0; l < 6; ++l) lists[l] = &call.list(l);
  std::size_t count = lists[0]->size();
  for (std::size_t l : {0, 1, 2, 3, 5}) {
    call.expect(lists[l]->size() == count, "expected lists of equal lengths");
    if (count > 0) call.full_list(l);
  }
  call.expect(!of.is_amsgrad || lists[4]->size() == count, "expected a largest moment for each");
  std::array<ArrayResults, 5> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::vector<double>, 5> x;
    for (std::size_t l = 0; l < (of.is_amsgrad ? 5U : 4U); ++l) {
      const Array* array = (*lists[l])[i];
      call.expect(array && array->shape == (*lists[0])[i]->shape, "expected tensors of one shape");
      x[l] = values<double>(*array);
    }
    call.expect((*lists[5])[i]->count() == 1, "expected a step of one element");
    double step = values<double>(*(*lists[5])[i])[0];
    for (std::size_t k = 0; k < x[0].size(); ++k)
      x[0][k] =
          stepped(of, step, x[0][k], x[1][k], x[2][k], x[3][k], of.is_amsgrad ? &x[4][k] : nullptr);
    for (std::size_t l = 0; l < (of.is_amsgrad ? 5U : 4U); ++l)
      out[l].push_back(Array::of((*lists[l])[i]->dtype, (*lists[l])[i]->shape, x[l]));
  }
  ArrayResults all;
  for (ArrayResults& list : out)
    for (auto& array : list) all.push_back(std::move(array));
  return all;
}

constexpr std::array kRows{
    OperatorRow{"_fused_adam", adam<false>},
    OperatorRow{"_fused_adam_", adam<false>},
    OperatorRow{"_fused_adamw", adam<true>},
    OperatorRow{"_fused_adamw_", adam<true>},
};

}  // namespace

std::span<const OperatorRow> optimizer_rows() { return kRows; }

}  // namespace reshard::sim
