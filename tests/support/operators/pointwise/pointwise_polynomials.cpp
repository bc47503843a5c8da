// SPDX-License-Identifier: BSD-3-Clause
// Orthogonal polynomials of degree n at x by their recurrences; 0 for negative degrees. Also frexp.
#include <array>
#include <cmath>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

constexpr double kMostDegree = 1 << 16;
constexpr OperandNames kXAndN{"x", "n", ""};

// `second` is the value at degree 1; next(k, value at k, value at k - 1) is that at k + 1. Degrees
// of kMostDegree or more give NaN.
template <class Next>
double recurrence(double degree, double second, Next next) {
  if (!(degree >= 0)) return std::isnan(degree) ? degree : 0;
  if (degree >= kMostDegree) return kNan;
  double last = 1, now = second;
  if (degree < 1) return last;
  for (double k = 1; k + 1 <= degree; ++k) {
    double after = next(k, now, last);
    last = now, now = after;
  }
  return now;
}

// Chebyshev polynomials of all four kinds, which differ only in the one of degree 1.
double chebyshev(double x, double n, double second) {
  return recurrence(n, second, [x](double, double now, double last) { return 2 * x * now - last; });
}
double first_kind(double x, double n) { return chebyshev(x, n, x); }
double second_kind(double x, double n) { return chebyshev(x, n, 2 * x); }
double third_kind(double x, double n) { return chebyshev(x, n, 2 * x - 1); }
double fourth_kind(double x, double n) { return chebyshev(x, n, 2 * x + 1); }

double hermite(double x, double n) {
  return recurrence(n, 2 * x,
                    [x](double k, double now, double last) { return 2 * (x * now - k * last); });
}
double hermite_of_normal(double x, double n) {
  return recurrence(n, x, [x](double k, double now, double last) { return x * now - k * last; });
}
double laguerre(double x, double n) {
  return recurrence(n, 1 - x, [x](double k, double now, double last) {
    return ((2 * k + 1 - x) * now - k * last) / (k + 1);
  });
}
double legendre(double x, double n) {
  return recurrence(n, x, [x](double k, double now, double last) {
    return ((2 * k + 1) * x * now - k * last) / (k + 1);
  });
}

template <double (*kOf)(double, double)>
constexpr Pointwise kPolynomial = floating<2>([](double x, double n) { return kOf(x, n); }, {},
                                              kXAndN);
template <double (*kOf)(double, double)>
constexpr Pointwise kShifted = floating<2>([](double x, double n) { return kOf(2 * x - 1, n); }, {},
                                           kXAndN);

// frexp has two results: the mantissa in [0.5, 1), with the sign of the number, and the exponent of
// 2.
constexpr Pointwise kMantissa = reals<1>([](double x) {
  int exponent = 0;
  return std::frexp(x, &exponent);
});

ArrayResults mantissa_and_exponent(const LocalCall& call) {
  std::vector<std::int64_t> exponents;
  for (double x : values<double>(call.tensor(0))) {
    int exponent = 0;
    if (std::isfinite(x)) (void)std::frexp(x, &exponent);
    exponents.push_back(exponent);
  }
  return results(evaluate(call, kMantissa),
                 Array::of(DType::I32, call.tensor(0).shape, std::move(exponents)));
}

constexpr std::array kPointwisePolynomialsRows{
    OperatorRow{"frexp", mantissa_and_exponent, 2},
    row("special_chebyshev_polynomial_t", kPolynomial<first_kind>),
    row("special_chebyshev_polynomial_u", kPolynomial<second_kind>),
    row("special_chebyshev_polynomial_v", kPolynomial<third_kind>),
    row("special_chebyshev_polynomial_w", kPolynomial<fourth_kind>),
    row("special_shifted_chebyshev_polynomial_t", kShifted<first_kind>),
    row("special_shifted_chebyshev_polynomial_u", kShifted<second_kind>),
    row("special_shifted_chebyshev_polynomial_v", kShifted<third_kind>),
    row("special_shifted_chebyshev_polynomial_w", kShifted<fourth_kind>),
    row("special_hermite_polynomial_h", kPolynomial<hermite>),
    row("special_hermite_polynomial_he", kPolynomial<hermite_of_normal>),
    row("special_laguerre_polynomial_l", kPolynomial<laguerre>),
    row("special_legendre_polynomial_p", kPolynomial<legendre>),
};

}  // namespace

std::span<const OperatorRow> pointwise_polynomial_rows() { return kPointwisePolynomialsRows; }

}  // namespace reshard::sim
