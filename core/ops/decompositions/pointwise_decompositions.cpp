// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators, and gates, which multiply one half of a tensor by the other.
#include <fmt/core.h>

#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

void rrelu_backward(Steps& s) {
  double lower = s.attributes().number("lower", 0), upper = s.attributes().number("upper", 0);
  bool trains = s.attributes().boolean("training", false);
  if (trains && upper - lower > 1e-6) return s.give(s("mul.Tensor", {s.in(0), s.in(2)}));
  OpValue is_result(s.attributes().boolean("self_is_result", false));
  s.give(s("leaky_relu_backward", {s.in(0), s.in(1)},
           {{"negative_slope", number((lower + upper) / 2)}, {"self_is_result", is_result}}));
}

struct Halves {
  int dim;
  StepTensor first, second;
};

Halves halves_of(Steps& s, StepTensor tensor) {
  Shape shape = s.shape(tensor);
  std::int64_t dim = s.attributes().integer("dim", -1), dims = shape.size();
  if (dims == 0) s.refuse("expected a tensor with dims");
  if (dim < -dims || dim >= dims)
    s.refuse(fmt::format("attr dim: dim {} is out of range for {} dims", dim, dims));
  if (dim < 0) dim += dims;
  std::int64_t size = shape[static_cast<int>(dim)];
  if (size % 2 != 0)
    s.refuse(fmt::format("expected an even length of dim {}, found {}", dim, size));
  auto half = [&](std::int64_t start) {
    return s(
        "slice.Tensor", {tensor},
        {{"dim", integer(dim)}, {"start", integer(start)}, {"end", integer(start + size / 2)}});
  };
  StepTensor first = half(0);
  return {static_cast<int>(dim), first, half(size / 2)};
}

void glu(Steps& s) {
  Halves halves = halves_of(s, s.in(0));
  s.give(s("mul.Tensor", {halves.first, s("sigmoid", {halves.second})}));
}

void glu_backward(Steps& s) {
  Halves halves = halves_of(s, s.in(1));
  StepTensor grad = s.in(0), gate = s("sigmoid", {halves.second});
  StepTensor rest = s("rsub.Scalar", {gate}, {{"other", number(1)}});
  StepTensor slope = s("mul.Tensor", {s("mul.Tensor", {rest, gate}), halves.first});
  StepTensor of_gate = s("mul.Tensor", {slope, grad});
  StepTensor of_first = s("mul.Tensor", {gate, grad});
  s.give(s.of_list("cat", {of_first, of_gate}, {{"dim", integer(halves.dim)}}));
}

constexpr Decomposition kPointwiseDecompositions[]{
    {"rrelu_with_noise_backward", rrelu_backward},
    {"glu", glu},
    {"glu_backward", glu_backward},
};

}  // namespace

std::span<const Decomposition> pointwise_decompositions() { return kPointwiseDecompositions; }

}  // namespace reshard
