// SPDX-License-Identifier: BSD-3-Clause
// Incomplete gamma functions, zeta, polygamma, modified Bessel functions of the second kind, and
// nextafter.
#include <array>
#include <bit>
#include <cmath>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;

// x^a exp(-x) / gamma(a).
double gamma_density(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }

// The lower incomplete gamma function for x < a + 1, by its power series.
double lower_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double k = a + 1; term > sum * 1e-17 && k < a + 1e5; ++k) sum += term *= x / k;
  return gamma_density(a, x) * sum;
}

// The upper one for x >= a + 1, by its continued fraction (Lentz's method).
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, out = d;
  for (int k = 1; k < 100000; ++k) {
    double n = -k * (k - a);
    b += 2;
    d = n * d + b, c = b + n / c;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d), c = std::fabs(c) < kTiny ? kTiny : c;
    out *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return gamma_density(a, x) * out;
}

double incomplete_gamma(double a, double x, bool upper) {
  if (!(a >= 0 && x >= 0)) return kNan;
  if (a == 0) return x > 0 ? !upper : kNan;
  if (x == 0) return upper;
  if (std::isinf(a)) return std::isinf(x) ? kNan : upper;
  if (std::isinf(x)) return !upper;
  if (x < a + 1) return upper ? 1 - lower_series(a, x) : lower_series(a, x);
  return upper ? upper_fraction(a, x) : 1 - upper_fraction(a, x);
}

// The sum of (q + k)^-x over k >= 0: the first terms, then the Euler-Maclaurin formula.
double zeta(double x, double q) {
  if (x == 1) return kInfinity;
  if (!(x > 1)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x) || q < -1e6) return kNan;
  }
  double sum = 0;
  for (int k = 0; k < 12 || q < 12; ++k, ++q) sum += std::pow(q, -x);
  // Bernoulli numbers over factorials: B2 / 2!, B4 / 4!, ..
  constexpr std::array kBernoulli{1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                  -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                  1.0 / 74724249600};
  double power = std::pow(q, -x), factor = x * power / q;
  sum += power * q / (x - 1) + power / 2;
  double rising = x;
  for (double b : kBernoulli) {
    sum += b * factor;
    factor *= (rising + 1) * (rising + 2) / (q * q);
    rising += 2;
  }
  return sum;
}

double polygamma(double x, double n) {
  double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::exp(std::lgamma(n + 1)) * zeta(n + 1, x);
}

// exp(x) times the modified Bessel function of the second kind, by the trapezoidal rule for its
// integral over exp(-x cosh t) cosh(order t), which converges very fast.
double scaled_bessel_k(int order, double x) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return kNan;
  constexpr double kStep = 1.0 / 16;
  double sum = 0.5;
  for (double t = kStep;; t += kStep) {
    double term = std::exp(-2 * x * std::pow(std::sinh(t / 2), 2)) * std::cosh(order * t);
    sum += term;
    if (term < sum * 1e-18) return sum * kStep;
  }
}
double bessel_k(int order, double x) {
  return x > 750 ? 0 : scaled_bessel_k(order, x) * std::exp(-x);
}

// ---- nextafter

template <class Float, class Bits>
double next_of(double from, double to) {
  return static_cast<double>(std::nextafter(static_cast<Float>(from), static_cast<Float>(to)));
}
// A bf16 is the upper half of an f32.
double next_bf16(double from, double to) {
  auto x = static_cast<float>(from);
  if (std::isnan(from) || std::isnan(to)) return kNan;
  if (from == to) return to;
  if (x == 0) return std::copysign(std::bit_cast<float>(0x10000u), to);
  auto bits = std::bit_cast<std::uint32_t>(x);
  bool away = (from < to) == (from > 0);
  return std::bit_cast<float>(away ? bits + 0x10000 : bits - 0x10000);
}

constexpr Pointwise kNext64 = reals<2>([](double a, double b) { return std::nextafter(a, b); }),
                    kNext32 =
                        reals<2>([](double a, double b) { return next_of<float, int>(a, b); }),
                    kNext16 = reals<2>([](double a, double b) { return next_bf16(a, b); });

ArrayResults next_after(const LocalCall& call) {
  DType dtype = promoted(call.tensor(0).dtype, call.tensor(1).dtype);
  call.expect(dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16,
              "expected f64, f32 or bf16");
  return results(evaluate(call, dtype == DType::F64   ? kNext64
                                : dtype == DType::F32 ? kNext32
                                                      : kNext16));
}

constexpr Pointwise kPolygamma =
    floating<1, 1>([](double x, double n) { return polygamma(x, n); }, {{{"n", 0}}});

ArrayResults any_polygamma(const LocalCall& call) {
  std::int64_t n = call.attributes.integer("n", 0);
  call.expect(n >= 0 && n <= 1024, "expected n from 0 to 1024");
  if (n == 0) return compute("digamma", {{false, {&call.tensor(0)}}}, {}, call.random);
  return results(evaluate(call, kPolygamma));
}

constexpr std::array kPointwiseGammaRows{
    row("igamma", floating<2>([](double a, double x) { return incomplete_gamma(a, x, false); })),
    row("igammac", floating<2>([](double a, double x) { return incomplete_gamma(a, x, true); })),
    OperatorRow{"nextafter", next_after},
    OperatorRow{"polygamma", any_polygamma},
    row("special_modified_bessel_k0", floating<1>([](double x) { return bessel_k(0, x); })),
    row("special_modified_bessel_k1", floating<1>([](double x) { return bessel_k(1, x); })),
    row("special_scaled_modified_bessel_k0",
        floating<1>([](double x) { return scaled_bessel_k(0, x); })),
    row("special_scaled_modified_bessel_k1",
        floating<1>([](double x) { return scaled_bessel_k(1, x); })),
    row("special_zeta", floating<2>([](double x, double q) { return zeta(x, q); })),
};

}  // namespace

std::span<const OperatorRow> pointwise_gamma_rows() { return kPointwiseGammaRows; }

}  // namespace reshard::sim
