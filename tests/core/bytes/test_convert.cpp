// SPDX-License-Identifier: BSD-3-Clause
// Conversions against the nearest of all values that a dtype has.
#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/bytes/convert.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

struct Format {
  DType dtype;
  int mantissa, exponent, bias;
  bool has_infinity;
  std::uint32_t sign() const { return 1u << (mantissa + exponent); }
};
const Format kFormats[] = {{DType::F16, 10, 5, 15, true},
                           {DType::BF16, 7, 8, 127, true},
                           {DType::F8E4M3, 3, 4, 7, false},
                           {DType::F8E5M2, 2, 5, 15, true}};

// The finite values from zero up, by their bits.
std::vector<double> values_of(const Format& format) {
  std::vector<double> out;
  std::uint32_t top = (1u << format.exponent) - 1;
  for (std::uint32_t bits = 0; bits < format.sign(); ++bits) {
    std::uint32_t field = bits >> format.mantissa, rest = bits & ((1u << format.mantissa) - 1);
    bool is_finite = format.has_infinity ? field < top : bits + 1 < format.sign();
    if (!is_finite) break;
    double part = std::pow(2.0, -format.mantissa) * rest;
    out.push_back(field == 0 ? part * std::pow(2.0, 1 - format.bias)
                             : (1 + part) * std::pow(2.0, int(field) - format.bias));
  }
  return out;
}

std::uint32_t nearest(const Format& format, const std::vector<double>& values, float value) {
  std::uint32_t sign = std::signbit(value) ? format.sign() : 0;
  double size = std::fabs(double(value));
  auto infinity = static_cast<std::uint32_t>(values.size());  // NaN where there is no infinity
  double step = values.back() - values[values.size() - 2];
  if (size >= values.back() + step / 2) {
    // A tie goes to the even one: the largest value is odd where infinity follows it.
    bool tie = size == values.back() + step / 2;
    return sign | (tie && values.size() % 2 == 1 ? infinity - 1 : infinity);
  }
  auto above = std::lower_bound(values.begin(), values.end(), size);
  if (above == values.end()) return sign | (infinity - 1);
  auto at = static_cast<std::uint32_t>(above - values.begin());
  if (*above == size || at == 0) return sign | at;
  double up = *above - size, down = size - values[at - 1];
  bool takes_upper = up < down || (up == down && at % 2 == 0);
  return sign | (takes_upper ? at : at - 1);
}

template <class T>
T converted(DType from, const void* in, DType to) {
  T out{};
  convert_row(from, static_cast<const std::byte*>(in), to, reinterpret_cast<std::byte*>(&out), 1);
  return out;
}

std::uint32_t to_format(const Format& format, float value) {
  return size_bytes(format.dtype) == 1 ? converted<std::uint8_t>(DType::F32, &value, format.dtype)
                                       : converted<std::uint16_t>(DType::F32, &value, format.dtype);
}

}  // namespace

TEST_CASE("Conversions round to the nearest value, ties to even") {
  Prng prng(1);
  for (const Format& format : kFormats) {
    CAPTURE(text(format.dtype));
    std::vector<double> values = values_of(format);
    auto expect = [&](float value) {
      CAPTURE(value);
      REQUIRE(to_format(format, value) == nearest(format, values, value));
    };
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto value = static_cast<float>(values[i]);
      // There and back.
      auto bits = static_cast<std::uint32_t>(i);
      REQUIRE(converted<float>(format.dtype, &bits, DType::F32) == value);
      for (float sign : {1.0f, -1.0f}) {
        expect(sign * value);
        expect(sign * std::nextafter(value, std::numeric_limits<float>::max()));
        double next = i + 1 < values.size() ? values[i + 1] : 2 * values[i] - values[i - 1];
        auto middle = static_cast<float>((values[i] + next) / 2);
        expect(sign * middle);
        expect(sign * std::nextafter(middle, 0.0f));
        expect(sign * std::nextafter(middle, std::numeric_limits<float>::max()));
      }
    }
    for (int i = 0; i < 50'000; ++i) {
      auto value = std::bit_cast<float>(static_cast<std::uint32_t>(prng.next()));
      if (std::isfinite(value)) expect(value);
    }
  }
}

TEST_CASE("Conversions keep infinities and what is no number") {
  for (const Format& format : kFormats) {
    CAPTURE(text(format.dtype));
    auto after = static_cast<std::uint32_t>(values_of(format).size());
    CHECK(to_format(format, std::numeric_limits<float>::infinity()) == after);
    CHECK(to_format(format, -std::numeric_limits<float>::infinity()) == (after | format.sign()));
    std::uint32_t nan = to_format(format, std::numeric_limits<float>::quiet_NaN());
    CHECK(std::isnan(converted<float>(format.dtype, &nan, DType::F32)));
    CHECK(std::isinf(converted<float>(format.dtype, &after, DType::F32)) == format.has_infinity);
  }
}

TEST_CASE("f64 goes by way of f32, and rows are dense") {
  // Nearest by itself is 0x3c01, but the nearest f32 is halfway between, and 0x3c00 is even.
  double value = 1 + std::pow(2.0, -11) + std::pow(2.0, -40);
  CHECK(converted<std::uint16_t>(DType::F64, &value, DType::F16) == 0x3c00);
  CHECK(converted<double>(DType::F64, &value, DType::F64) == value);
  const float row[] = {1, -2, 0.5f};
  double out[3] = {};
  convert_row(DType::F32, reinterpret_cast<const std::byte*>(row), DType::F64,
              reinterpret_cast<std::byte*>(out), 3);
  CHECK((out[0] == 1 && out[1] == -2 && out[2] == 0.5));
}
