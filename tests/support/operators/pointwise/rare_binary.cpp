// SPDX-License-Identifier: BSD-3-Clause
// Pointwise operators of two operands, tensors or scalars.
#include <array>
#include <cmath>
#include <numeric>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

constexpr OperandNames kPower{"self", "exponent", ""};

// Shifts by 64 bits or more leave only the sign.
Int shifted_left(Int a, Int b) {
  return b < 0 || b > 63 ? 0 : static_cast<Int>(static_cast<Unsigned>(a) << b);
}
Int shifted_right(Int a, Int b) { return a >> (b < 0 || b > 63 ? 63 : b); }

Int magnitude(Int a) { return a < 0 ? negated(a) : a; }
Int gcd(Int a, Int b) {
  auto unsigned_of = [](Int x) { return static_cast<Unsigned>(magnitude(x)); };
  return static_cast<Int>(std::gcd(unsigned_of(a), unsigned_of(b)));
}

constexpr Pointwise kShiftLeft = integers<2>([](Int a, Int b) { return shifted_left(a, b); });
constexpr Pointwise kShiftRight = integers<2>([](Int a, Int b) { return shifted_right(a, b); });
constexpr Pointwise kAnd = integers<2>([](Int a, Int b) { return a & b; });
constexpr Pointwise kOr = integers<2>([](Int a, Int b) { return a | b; });
constexpr Pointwise kXor = integers<2>([](Int a, Int b) { return a ^ b; });
constexpr Pointwise kMaximum = numbers<2>([](auto a, auto b) { return larger(a, b); });
constexpr Pointwise kMinimum = numbers<2>([](auto a, auto b) { return smaller(a, b); });
constexpr std::array kRareBinaryRows{
    row("remainder", numbers<2>([](auto a, auto b) { return remainder(a, b); })),
    row("fmod", numbers<2>([](auto a, auto b) { return truncated_remainder(a, b); })),
    row("float_power",
        pointwise<2>(
            Promotion::Double, [](double a, double b) { return std::pow(a, b); }, {}, kPower)),
    row("logaddexp", floating<2>([](double a, double b) { return log_of_sum(a, b); })),
    row("logaddexp2",
        floating<2>([](double a, double b) { return log_of_sum(a * M_LN2, b * M_LN2) / M_LN2; })),
    row("copysign", floating<2>([](double a, double b) { return std::copysign(a, b); })),
    row("xlogy", floating<2>([](double a, double b) {
          return std::isnan(b) ? b : a == 0 ? 0 : a * std::log(b);
        })),
    row("special_xlog1py", floating<2>([](double a, double b) {
          return std::isnan(b) ? b : a == 0 ? 0 : a * std::log1p(b);
        })),
    row("ldexp", floating<2>([](double a, double b) { return a * std::exp2(b); })),
    row("heaviside", numbers<2>([](auto a, auto b) {
          using T = decltype(a);
          return a == 0 ? b : is_nan(a) ? a : a < 0 ? T{0} : T{1};
        })),
    row("gcd", integers<2>([](Int a, Int b) { return gcd(a, b); })),
    row("lcm", integers<2>([](Int a, Int b) {
          Int g = gcd(a, b);
          return g == 0 ? 0 : magnitude(times(a / g, b));
        })),
    row("max.other", kMaximum),
    row("min.other", kMinimum),
    row("fmax", numbers<2>([](auto a, auto b) { return is_nan(b) || a > b ? a : b; })),
    row("fmin", numbers<2>([](auto a, auto b) { return is_nan(b) || a < b ? a : b; })),
    row("eq", truth<2>([](auto a, auto b) { return a == b; })),
    row("ne", truth<2>([](auto a, auto b) { return a != b; })),
    row("lt", truth<2>([](auto a, auto b) { return a < b; })),
    row("le", truth<2>([](auto a, auto b) { return a <= b; })),
    row("gt", truth<2>([](auto a, auto b) { return a > b; })),
    row("ge", truth<2>([](auto a, auto b) { return a >= b; })),
    row("logical_and", truth<2>([](auto a, auto b) { return a != 0 && b != 0; })),
    row("logical_or", truth<2>([](auto a, auto b) { return a != 0 || b != 0; })),
    row("logical_xor", truth<2>([](auto a, auto b) { return (a != 0) != (b != 0); })),
    row("bitwise_and", kAnd),
    row("bitwise_or", kOr),
    row("bitwise_xor", kXor),
    row("bitwise_left_shift", kShiftLeft),
    row("bitwise_right_shift", kShiftRight),
    row("__and__", kAnd),
    row("__or__", kOr),
    row("__xor__", kXor),
    row("__lshift__", kShiftLeft),
    row("__rshift__", kShiftRight),
};

}  // namespace

std::span<const OperatorRow> rare_binary_rows() { return kRareBinaryRows; }

}  // namespace reshard::sim
