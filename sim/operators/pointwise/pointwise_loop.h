// SPDX-License-Identifier: BSD-3-Clause
// A pointwise operator as data: operands, parameters, dtypes, and one loop for each of the two
// types that operators compute in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace reshard::sim {

// `operands` and `out` have `count` elements each; `parameters` apply to all elements.
template <class T>
using PointwiseLoop = void (*)(const T* const* operands, const T* parameters, T* out,
                               std::int64_t count);

// Common: computes in the common dtype of the operands, which is that of the result. Floating: the
// same, after integers become f32. Double: everything becomes f64. Truth: the result is bool.
enum class Promotion : std::uint8_t { Common, Floating, Double, Truth };

// An attribute and its default.
struct Parameter {
  const char* name;
  double absent;
};

inline constexpr std::size_t kMaxOperands = 3, kMaxParameters = 3;
using OperandNames = std::array<const char*, kMaxOperands>;
using Parameters = std::array<Parameter, kMaxParameters>;
inline constexpr OperandNames kSelfAndOther{"self", "other", ""};

// An operand with the name of an attribute of the call is that scalar; any other operand is the
// call's next tensor. A null loop means that the operator does not take such dtypes.
struct Pointwise {
  Promotion promotion = Promotion::Common;
  int operand_count = 0, parameter_count = 0;
  OperandNames operands{};
  Parameters parameters{};
  PointwiseLoop<double> real = nullptr;
  PointwiseLoop<std::int64_t> whole = nullptr;
};

template <class F, class T, std::size_t... kOperand, std::size_t... kParameter>
void run_loop(const T* const* operands, const T* parameters, T* out, std::int64_t count,
              std::index_sequence<kOperand...>, std::index_sequence<kParameter...>) {
  [[maybe_unused]] const std::array<T, sizeof...(kParameter)> fixed{parameters[kParameter]...};
  const std::array<const T*, sizeof...(kOperand)> in{operands[kOperand]...};
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<T>(F{}(in[kOperand][i]..., fixed[kParameter]...));
}

template <class F, class T, std::size_t kOperands, std::size_t kParameters>
void pointwise_loop(const T* const* operands, const T* parameters, T* out, std::int64_t count) {
  run_loop<F>(operands, parameters, out, count, std::make_index_sequence<kOperands>{},
              std::make_index_sequence<kParameters>{});
}

// The function takes kOperands operands, then kParameters parameters. With kWhole it must accept
// integers as well (`auto` arguments).
template <int kOperands, int kParameters = 0, bool kWhole = false, class F>
constexpr Pointwise pointwise(Promotion promotion, F, Parameters parameters = {},
                              OperandNames operands = kSelfAndOther) {
  Pointwise out{promotion, kOperands, kParameters, operands, parameters, nullptr, nullptr};
  out.real = pointwise_loop<F, double, kOperands, kParameters>;
  if constexpr (kWhole) out.whole = pointwise_loop<F, std::int64_t, kOperands, kParameters>;
  return out;
}

// Floats; integers become floats.
template <int kOperands, int kParameters = 0, class F>
constexpr Pointwise floating(F f, Parameters parameters = {},
                             OperandNames operands = kSelfAndOther) {
  return pointwise<kOperands, kParameters>(Promotion::Floating, f, parameters, operands);
}
// Floats only; integers are refused.
template <int kOperands, int kParameters = 0, class F>
constexpr Pointwise reals(F f, Parameters parameters = {}, OperandNames operands = kSelfAndOther) {
  return pointwise<kOperands, kParameters>(Promotion::Common, f, parameters, operands);
}
// Floats and integers.
template <int kOperands, int kParameters = 0, class F>
constexpr Pointwise numbers(F f, Parameters parameters = {},
                            OperandNames operands = kSelfAndOther) {
  return pointwise<kOperands, kParameters, true>(Promotion::Common, f, parameters, operands);
}
// Floats and integers; the result is bool.
template <int kOperands, class F>
constexpr Pointwise truth(F f, OperandNames operands = kSelfAndOther) {
  return pointwise<kOperands, 0, true>(Promotion::Truth, f, {}, operands);
}
// Integers and bool only.
template <int kOperands, class F>
constexpr Pointwise integers(F, OperandNames operands = kSelfAndOther) {
  Pointwise out{Promotion::Common, kOperands, 0, operands, {}, nullptr, nullptr};
  out.whole = pointwise_loop<F, std::int64_t, kOperands, 0>;
  return out;
}

// Derivatives, times the incoming gradient.
inline constexpr OperandNames kGradAndSelf{"grad_output", "self_tensor", ""};

// Operands are the gradient and the input, by names that no attribute has.
template <int kParameters = 0, class F>
constexpr Pointwise gradient(F f, Parameters parameters = {}) {
  return floating<2, kParameters>(f, parameters, kGradAndSelf);
}

}  // namespace reshard::sim
