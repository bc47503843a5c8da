// SPDX-License-Identifier: BSD-3-Clause
// Special functions, element by element.
#include <array>
#include <cmath>
#include <numbers>

#include "sim/operators/pointwise/arithmetic.h"
#include "sim/operators/pointwise/pointwise.h"
#include "tests/support/operators/rare_rows.h"

namespace reshard::sim {
namespace {

using namespace arithmetic;
constexpr double kPi = std::numbers::pi;

// Quantile of the normal distribution: starts from Acklam's rational approximation in the tails and
// from a linear one in between, then takes eight steps of Halley's method against erfc.
double normal_quantile(double p) {
  if (!(p > 0 && p < 1)) return p == 0 ? -kInfinity : p == 1 ? kInfinity : kNan;
  if (p > 0.5) return -normal_quantile(1 - p);
  constexpr std::array kTop{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                            -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr std::array kBottom{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                               3.754408661907416e+00, 1.0};
  auto horner = [](const auto& of, double x) {
    double out = 0;
    for (double c : of) out = out * x + c;
    return out;
  };
  double q = std::sqrt(-2 * std::log(p)), x = horner(kTop, q) / horner(kBottom, q);
  if (p > 0.02425) x = (p - 0.5) * std::sqrt(2 * kPi);
  for (int i = 0; i < 8; ++i) {
    double error = 0.5 * std::erfc(-x / std::numbers::sqrt2) - p;
    double step = error * std::sqrt(2 * kPi) * std::exp(x * x / 2);
    x -= step / (1 + x * step / 2);
  }
  return x;
}

double inverse_erf(double y) {
  if (std::fabs(y) >= 1) return std::fabs(y) == 1 ? y * kInfinity : kNan;
  double x = normal_quantile((y + 1) / 2) / std::numbers::sqrt2;
  for (int i = 0; i < 2; ++i)  // Newton steps, which restore the precision near 0
    x -= (std::erf(x) - y) / (2 * std::numbers::inv_sqrtpi * std::exp(-x * x));
  return x;
}

// exp(x^2) erfc(x); for large x by its continued fraction.
double scaled_erfc(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  double fraction = x;
  for (int k = 20; k > 0; --k) fraction = x + k / 2.0 / fraction;
  return std::numbers::inv_sqrtpi / fraction;
}

double log_normal_share(double x) {
  return x < -1 ? std::log(scaled_erfc(-x / std::numbers::sqrt2) / 2) - x * x / 2
                : std::log1p(-std::erfc(x / std::numbers::sqrt2) / 2);
}

// Derivative of log gamma: by recurrence up to where its asymptotic series holds.
double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    double whole, rest = std::modf(x, &whole);
    return digamma(1 - x) - kPi / std::tan(kPi * rest);
  }
  double out = 0;
  for (; x < 10; ++x) out -= 1 / x;
  double y = 1 / (x * x);
  return out + std::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132)))));
}

// Modified Bessel functions of the first kind by their power series.
double bessel_i(int order, double x) {
  double term = order ? x / 2 : 1, out = 0, quarter = x * x / 4;
  if (std::isinf(x)) return order && x < 0 ? -kInfinity : kInfinity;
  for (int k = 1; k < 2000 && out + term != out; ++k) {
    out += term;
    term *= quarter / (static_cast<double>(k) * (k + order));
  }
  return out;
}
double scaled_bessel_i(int order, double x) {
  double a = std::fabs(x);
  if (a < 50) return bessel_i(order, x) * std::exp(-a);
  double term = 1, out = 0, mu = 4.0 * order * order;
  for (int k = 1; k < 20; ++k) {
    out += term;
    term *= -(mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * a);
  }
  out /= std::sqrt(2 * kPi * a);
  return order && x < 0 ? -out : out;
}

constexpr Pointwise kManyLogGamma = floating<1, 1>(
    [](double x, double p) {
      double out = p * (p - 1) / 4 * std::log(kPi);
      for (double j = 0; j < p; ++j) out += std::lgamma(x - j / 2);
      return out;
    },
    {{{"p", 1}}});

ArrayResults mvlgamma(const LocalCall& call) {
  double p = call.number("p", 1);
  call.expect(p >= 1 && p <= 1024, "expected p from 1 to 1024");
  return results(evaluate(call, kManyLogGamma));
}

double large_bessel_i(int order, double x) {
  return std::fabs(x) < 50 ? bessel_i(order, x)
                           : scaled_bessel_i(order, x) * std::exp(std::fabs(x));
}
constexpr Pointwise kBesselI0 = floating<1>([](double x) { return large_bessel_i(0, x); }),
                    kBesselI1 = floating<1>([](double x) { return large_bessel_i(1, x); });

constexpr Pointwise kLogGamma = floating<1>([](double x) { return std::lgamma(x); });

constexpr std::array kPointwiseSpecialRows{
    row("digamma", floating<1>([](double x) { return digamma(x); })),
    row("erfinv", floating<1>([](double x) { return inverse_erf(x); })),
    row("i0", kBesselI0),
    row("lgamma", kLogGamma),
    OperatorRow{"mvlgamma", mvlgamma},
    row("special_bessel_j0", floating<1>([](double x) { return ::j0(x); })),
    row("special_bessel_j1", floating<1>([](double x) { return ::j1(x); })),
    row("special_bessel_y0", floating<1>([](double x) { return ::y0(x); })),
    row("special_bessel_y1", floating<1>([](double x) { return ::y1(x); })),
    row("special_entr", floating<1>([](double x) {
          return x > 0 ? -x * std::log(x) : x == 0 ? 0 : std::isnan(x) ? x : -kInfinity;
        })),
    row("special_erfcx", floating<1>([](double x) { return scaled_erfc(x); })),
    row("special_i0e", floating<1>([](double x) { return scaled_bessel_i(0, x); })),
    row("special_i1", kBesselI1),
    row("special_modified_bessel_i0", kBesselI0),
    row("special_modified_bessel_i1", kBesselI1),
    row("special_i1e", floating<1>([](double x) { return scaled_bessel_i(1, x); })),
    row("special_log_ndtr", floating<1>([](double x) { return log_normal_share(x); })),
    row("special_ndtri", floating<1>([](double x) { return normal_quantile(x); })),
    row("special_spherical_bessel_j0", floating<1>([](double x) {
          return x == 0 ? 1 : std::isinf(x) ? 0 : std::sin(x) / x;
        })),
};

}  // namespace

std::span<const OperatorRow> pointwise_special_rows() { return kPointwiseSpecialRows; }

}  // namespace reshard::sim
