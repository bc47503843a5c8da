// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of three operands, and clamping to limits that can be absent.
#include <array>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

constexpr OperandNames kProducts{"self", "tensor1", "tensor2"};
constexpr OperandNames kBranches{"self", "other", ""};
constexpr Parameters kValue{{{"value", 1}}};

constexpr Pointwise kClamp =
    numbers<3>([](auto x, auto low, auto high) { return smaller(larger(x, low), high); }, {},
               {"self", "min", "max"});
constexpr Pointwise kClampMin =
    numbers<2>([](auto x, auto low) { return larger(x, low); }, {}, {"self", "min", ""});
constexpr Pointwise kClampMax =
    numbers<2>([](auto x, auto high) { return smaller(x, high); }, {}, {"self", "max", ""});

// Limits are tensors or scalars; either can be absent.
ArrayResults clamp(const LocalCall& call) {
  const Array *low = call.optional_tensor(1), *high = call.optional_tensor(2);
  if (call.attributes.has("min") && !high) high = low, low = nullptr;
  bool has_low = low || call.attributes.has("min"), has_high = high || call.attributes.has("max");
  call.expect(has_low || has_high, "expected min or max or both, found neither");
  const Array* self = &call.tensor(0);
  if (low && high) return results(evaluate_with(call, kClamp, {self, low, high}));
  const Pointwise& op = has_low && has_high ? kClamp : has_low ? kClampMin : kClampMax;
  const Array* limit = low ? low : high;
  return results(limit ? evaluate_with(call, op, {self, limit}) : evaluate_with(call, op, {self}));
}

// Chooses elements by the condition; `dtype` is that of the branches.
template <class T>
Array chosen(const Array& condition, const Array& yes, const Array& no, DType dtype) {
  std::vector<std::int64_t> holds = values<std::int64_t>(condition);
  std::vector<T> out = values<T>(no), other = values<T>(yes);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (holds[i]) out[i] = other[i];
  return Array::of(dtype, condition.shape, std::move(out));
}

Array of_term(const Term& term, DType dtype) {
  if (term.array) return *term.array;
  if (term.scalar_kind == DType::F64)
    return Array::of(dtype, Shape{}, std::vector<double>{term.number});
  return Array::of(dtype, Shape{}, std::vector<std::int64_t>{term.integer});
}

Array select_by(const LocalCall& call, const Array& condition, const Term& yes, const Term& no,
                DType dtype) {
  call.expect(!is_real(condition.dtype), "expected a condition of bool");
  Array first = of_term(yes, dtype), second = of_term(no, dtype);
  Shape shape = broadcast(call, condition.shape, broadcast(call, first.shape, second.shape));
  Array at = broadcast_to(call, condition, shape);
  first = broadcast_to(call, first, shape), second = broadcast_to(call, second, shape);
  return visit_computing(dtype,
                         [&](auto t) { return chosen<decltype(t)>(at, first, second, dtype); });
}

ArrayResults where(const LocalCall& call) {
  std::size_t position = 1;
  std::array<Term, 2> branches{term_of(call, kBranches[0], position), Term{}};
  branches[1] = term_of(call, kBranches[1], position);
  return results(select_by(call, call.tensor(0), branches[0], branches[1], common_dtype(branches)));
}

// The value is converted to the tensor's dtype.
ArrayResults masked_fill(const LocalCall& call) {
  std::size_t position = 2;
  Term value = term_of(call, "value", position), self{&call.tensor(0)};
  return results(select_by(call, call.tensor(1), value, self, self.array->dtype));
}

constexpr std::array kPointwiseTernaryRows{
    OperatorRow{"clamp", clamp},
    OperatorRow{"clip", clamp},
    row("clamp_min", kClampMin),
    row("clamp_max", kClampMax),
    row("lerp", reals<3>(
                    [](double a, double b, double weight) {
                      return std::fabs(weight) < 0.5 ? a + weight * (b - a)
                                                     : b - (b - a) * (1 - weight);
                    },
                    {}, {"self", "end", "weight"})),
    row("addcmul", numbers<3, 1>([](auto x, auto a, auto b,
                                    auto value) { return plus(x, times(value, times(a, b))); },
                                 kValue, kProducts)),
    row("addcdiv", floating<3, 1>([](double x, double a, double b,
                                     double value) { return x + value * (a / b); },
                                  kValue, kProducts)),
    OperatorRow{"where", where},
    OperatorRow{"masked_fill", masked_fill},
};

}  // namespace

std::span<const OperatorRow> pointwise_ternary_rows() { return kPointwiseTernaryRows; }

}  // namespace reshard::sim
