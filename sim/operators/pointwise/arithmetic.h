// SPDX-License-Identifier: BSD-3-Clause
// Arithmetic with PyTorch's semantics for both double and int64_t.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/errors.h"

namespace reshard::sim::arithmetic {

using Int = std::int64_t;
using Unsigned = std::uint64_t;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline double plus(double a, double b) { return a + b; }
inline double minus(double a, double b) { return a - b; }
inline double times(double a, double b) { return a * b; }
inline double negated(double a) { return -a; }
inline bool is_nan(double a) { return std::isnan(a); }

inline Int plus(Int a, Int b) {
  return static_cast<Int>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
}
inline Int minus(Int a, Int b) {
  return static_cast<Int>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
}
inline Int times(Int a, Int b) {
  return static_cast<Int>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}
inline Int negated(Int a) { return minus(Int{0}, a); }
inline bool is_nan(Int) { return false; }

// If either is NaN, so is the result.
template <class T>
T larger(T a, T b) {
  return is_nan(a) || a > b ? a : b;
}
template <class T>
T smaller(T a, T b) {
  return is_nan(a) || a < b ? a : b;
}

// Division rounded towards minus infinity, and its remainder, which has the sign of the divisor.
inline double floor_division(double a, double b) {
  if (b == 0) return a / b;
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}
inline double remainder(double a, double b) {
  double rest = std::fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
inline double truncated_division(double a, double b) { return std::trunc(a / b); }
inline double truncated_remainder(double a, double b) { return std::fmod(a, b); }

inline Int truncated_division(Int a, Int b) {
  if (b == 0) throw InputError("expected no zero among integer divisors, found one");
  return b == -1 ? negated(a) : a / b;
}
inline Int truncated_remainder(Int a, Int b) {
  return minus(a, times(truncated_division(a, b), b));
}
inline Int remainder(Int a, Int b) {
  Int rest = truncated_remainder(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
inline Int floor_division(Int a, Int b) {
  Int rest = truncated_remainder(a, b);
  return truncated_division(a, b) - (rest != 0 && (b < 0) != (rest < 0) ? 1 : 0);
}

inline double power(double a, double b) { return std::pow(a, b); }
// A negative power of anything but 1 and -1 is 0.
inline Int power(Int a, Int b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  Int out = 1;
  for (; b > 0; b >>= 1, a = times(a, a))
    if (b & 1) out = times(out, a);
  return out;
}

inline double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
inline double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
// log(exp(a) + exp(b)).
inline double log_of_sum(double a, double b) {
  if (std::isinf(a) && a == b) return a;
  double high = larger(a, b);
  return std::isnan(high) ? high : high + std::log1p(std::exp(-std::fabs(a - b)));
}

}  // namespace reshard::sim::arithmetic
