// SPDX-License-Identifier: BSD-3-Clause
#include "core/bytes/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <Eigen/Core>

#include "core/base/errors.h"

namespace reshard {
namespace {

// An 8-bit float as in "FP8 Formats for Deep Learning" (arXiv 2209.05433): a sign, then the
// exponent, then the mantissa.
template <int kMantissa, int kBias, bool kHasInfinity>
struct Float8 {
  static constexpr int kTop = (1 << (7 - kMantissa)) - 1;  // the largest exponent field
  static constexpr std::uint8_t kNan = 0x7f, kInfinity = kHasInfinity ? kTop << kMantissa : kNan;
  static constexpr std::uint8_t kLargest = kHasInfinity ? kInfinity - 1 : kNan - 1;
  std::uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) {
    std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
    bits = static_cast<std::uint8_t>(sign | (std::isnan(value) ? kNan : magnitude(value)));
  }
  explicit operator float() const {
    int field = (bits & 0x7f) >> kMantissa, mantissa = bits & ((1 << kMantissa) - 1);
    float out = std::numeric_limits<float>::quiet_NaN();
    if (kHasInfinity && (bits & 0x7f) == kInfinity)
      out = std::numeric_limits<float>::infinity();
    else if ((bits & 0x7f) <= kLargest)
      out = std::ldexp(static_cast<float>(field == 0 ? mantissa : mantissa + (1 << kMantissa)),
                       std::max(field, 1) - kBias - kMantissa);
    return (bits & 0x80) != 0 ? -out : out;
  }

 private:
  static std::uint8_t magnitude(float value) {
    value = std::fabs(value);
    if (std::isinf(value)) return kInfinity;
    // In steps of the value's own binade, which are those of the least normal one below that.
    int exponent = value == 0 ? 1 - kBias : std::max(std::ilogb(value), 1 - kBias);
    auto steps = static_cast<int>(std::nearbyint(std::ldexp(value, kMantissa - exponent)));
    // Counts on from the binade's first value: a carry runs into the exponent.
    int out = ((exponent + kBias - 1) << kMantissa) + steps;
    return out > kLargest ? kInfinity : static_cast<std::uint8_t>(out);
  }
};

// Calls visit(T()) with the type of the dtype's elements.
template <class Visit>
void visit_floating(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::F64:
      return visit(double());
    case DType::F32:
      return visit(float());
    case DType::F16:
      return visit(Eigen::half());
    case DType::BF16:
      return visit(Eigen::bfloat16());
    case DType::F8E4M3:
      return visit(Float8<3, 7, false>());
    case DType::F8E5M2:
      return visit(Float8<2, 15, true>());
    default:
      RESHARD_CHECK(false, "a floating-point dtype");
  }
}

template <class From, class To>
To converted(From value) {
  if constexpr (std::is_same_v<From, double> && std::is_same_v<To, double>)
    return value;
  else
    return static_cast<To>(static_cast<float>(value));
}

}  // namespace

void convert_row(DType from, const std::byte* in, DType to, std::byte* out, std::int64_t count) {
  visit_floating(from, [&](auto source) {
    visit_floating(to, [&](auto destination) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(&source, in + i * static_cast<std::int64_t>(sizeof source), sizeof source);
        destination = converted<decltype(source), decltype(destination)>(source);
        std::memcpy(out + i * static_cast<std::int64_t>(sizeof destination), &destination,
                    sizeof destination);
      }
    });
  });
}

}  // namespace reshard
