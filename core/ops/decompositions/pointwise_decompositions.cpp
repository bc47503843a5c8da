// SPDX-License-Identifier: BSD-3-Clause
// What works element by element, and gates, which take one half of a tensor by the other.
#include <fmt/format.h>

#include "core/ops/decompositions/steps.h"

namespace reshard {
namespace {

OpValue number(double value) { return OpValue(value); }
OpValue integer(std::int64_t value) { return OpValue(value); }

void log_sigmoid_forward(Steps& s) {
  StepTensor x = s.in(0);
  StepTensor zero = s("new_zeros", {x}, {{"size", OpValue(std::vector<OpValue>{})}});
  StepTensor least = s("minimum", {zero, x});
  StepTensor small = s("exp", {s("neg", {s("abs", {x})})});
  s.give(s("sub.Tensor", {least, s("log1p", {small})}));
  s.give(small);
}

void floor_divide(Steps& s) {
  const OpValue* other = s.attributes().find("other");
  OpValue down("floor");
  if (other) {
    s.give(s("div.Tensor_mode", {s.in(0)}, {{"other", *other}, {"rounding_mode", down}}));
  } else {
    s.give(s("div.Tensor_mode", {s.in(0), s.in(1)}, {{"rounding_mode", down}}));
  }
}

void rsub(Steps& s) {
  const OpValue* alpha = s.attributes().find("alpha");
  s.give(s("sub.Tensor", {s.in(1), s.in(0)}, {{"alpha", alpha ? *alpha : integer(1)}}));
}

void prelu(Steps& s) {
  StepTensor x = s.in(0);
  StepTensor is_positive = s("gt.Scalar", {x}, {{"other", integer(0)}});
  s.give(s("where.self", {is_positive, x, s("mul.Tensor", {s.in(1), x})}));
}

void polar(Steps& s) {
  StepTensor real = s("mul.Tensor", {s.in(0), s("cos", {s.in(1)})});
  StepTensor imaginary = s("mul.Tensor", {s.in(0), s("sin", {s.in(1)})});
  s.give(s("complex", {real, imaginary}));
}

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

constexpr Decomposition kAll[]{
    {"log_sigmoid_forward", log_sigmoid_forward},
    {"floor_divide", floor_divide},
    {"floor_divide.Scalar", floor_divide},
    {"rsub.Tensor", rsub},
    {"_prelu_kernel", prelu},
    {"polar", polar},
    {"rrelu_with_noise_backward", rrelu_backward},
    {"glu", glu},
    {"glu_backward", glu_backward},
};

}  // namespace

std::span<const Decomposition> pointwise_decompositions() { return kAll; }

}  // namespace reshard
