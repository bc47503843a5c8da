// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of two operands, tensors or scalars.
#include <array>
#include <cmath>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

constexpr Parameters kAlpha{{{"alpha", 1}}};
constexpr OperandNames kPower{"self", "exponent", ""};

constexpr Pointwise kDivide = floating<2>([](double a, double b) { return a / b; });
constexpr Pointwise kDivideFloor = numbers<2>([](auto a, auto b) { return floor_division(a, b); });
constexpr Pointwise kDivideTruncate =
    numbers<2>([](auto a, auto b) { return truncated_division(a, b); });

ArrayResults div(const LocalCall& call) {
  std::string mode = call.attributes.text("rounding_mode", "");
  call.expect(mode.empty() || mode == "floor" || mode == "trunc",
              "expected the rounding_mode \"floor\" or \"trunc\" or none");
  return results(evaluate(call, mode.empty()      ? kDivide
                                : mode == "floor" ? kDivideFloor
                                                  : kDivideTruncate));
}

constexpr Pointwise kMaximum = numbers<2>([](auto a, auto b) { return larger(a, b); });
constexpr Pointwise kMinimum = numbers<2>([](auto a, auto b) { return smaller(a, b); });
constexpr Pointwise kMultiply = numbers<2>([](auto a, auto b) { return times(a, b); });

constexpr std::array kPointwiseBinaryRows{
    row("add",
        numbers<2, 1>([](auto a, auto b, auto alpha) { return plus(a, times(alpha, b)); }, kAlpha)),
    row("sub", numbers<2, 1>([](auto a, auto b, auto alpha) { return minus(a, times(alpha, b)); },
                             kAlpha)),
    row("subtract",
        numbers<2, 1>([](auto a, auto b, auto alpha) { return minus(a, times(alpha, b)); },
                      kAlpha)),
    row("rsub", numbers<2, 1>([](auto a, auto b, auto alpha) { return minus(b, times(alpha, a)); },
                              kAlpha)),
    row("mul", kMultiply),
    row("multiply", kMultiply),
    OperatorRow{"div", div},
    OperatorRow{"divide", div},
    row("true_divide", kDivide),
    row("floor_divide", kDivideFloor),
    row("pow", numbers<2>([](auto a, auto b) { return power(a, b); }, {}, kPower)),
    row("atan2", floating<2>([](double a, double b) { return std::atan2(a, b); })),
    row("hypot", floating<2>([](double a, double b) { return std::hypot(a, b); })),
    row("maximum", kMaximum),
    row("minimum", kMinimum),
};

}  // namespace

std::span<const OperatorRow> pointwise_binary_rows() { return kPointwiseBinaryRows; }

}  // namespace reshard::sim
