// SPDX-License-Identifier: BSD-3-Clause
// Floats of 8 bits with kMantissa mantissa bits: e4m3 (3; without infinities, like PyTorch's
// float8_e4m3fn) and e5m2 (2). Rounds to nearest, ties to even. Values that are too large become
// infinite in e5m2 and NaN in e4m3.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reshard::sim {

template <int kMantissa>
class Float8 {
 public:
  Float8() = default;
  explicit Float8(double value) {
    double size = std::fabs(value);
    bits_ = static_cast<std::uint8_t>((std::signbit(value) ? 0x80 : 0) | bits_of(size));
  }
  explicit operator double() const {
    int exponent = (bits_ & 0x7f) >> kMantissa, rest = bits_ & (kOne - 1);
    double size = exponent == 0 ? std::ldexp(rest, 1 - kBias - kMantissa)
                                : std::ldexp(kOne + rest, exponent - kBias - kMantissa);
    if ((bits_ & 0x7f) > kLargest)
      size = (bits_ & 0x7f) == kInfinite ? std::numeric_limits<double>::infinity()
                                         : std::numeric_limits<double>::quiet_NaN();
    return bits_ & 0x80 ? -size : size;
  }

 private:
  static constexpr int kOne = 1 << kMantissa, kBias = (1 << (6 - kMantissa)) - 1, kNan = 0x7f;
  // Without infinities only the last pattern is a NaN.
  static constexpr int kInfinite = kMantissa == 2 ? 0x7c : -1;
  static constexpr int kLargest = kMantissa == 2 ? 0x7b : 0x7e;

  static int bits_of(double size) {
    if (std::isnan(size)) return kNan;
    if (std::isinf(size)) return kInfinite < 0 ? kNan : kInfinite;
    if (size == 0) return 0;
    int exponent = std::max(std::ilogb(size), 1 - kBias);
    double steps = std::nearbyint(std::ldexp(size, kMantissa - exponent));
    // `steps` is below kOne only for subnormal numbers, where the exponent bits are 0.
    double bits = std::ldexp(exponent + kBias - 1, kMantissa) + steps;
    if (bits <= kLargest) return static_cast<int>(bits);
    return kInfinite < 0 ? kNan : kInfinite;
  }

  std::uint8_t bits_ = 0;
};

}  // namespace reshard::sim
