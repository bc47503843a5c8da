// SPDX-License-Identifier: BSD-3-Clause
#include "sim/operators/random_stream.h"

#include <cmath>
#include <numbers>

#include "core/base/integers.h"

namespace reshard::sim {
namespace {

// A number in [0, 1) from the upper 53 bits of two words.
double unit_of(std::uint32_t high, std::uint32_t low) {
  std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    std::uint64_t a = kMultiply0 * counter[0], b = kMultiply1 * counter[2];
    auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

double RandomNumber::unit() const { return unit_of(bits[0], bits[1]); }
double RandomNumber::above_zero() const { return 1 - unit(); }

double RandomNumber::normal() const {
  return std::sqrt(-2 * std::log(above_zero())) *
         std::cos(2 * std::numbers::pi * unit_of(bits[2], bits[3]));
}

std::uint64_t RandomNumber::below(std::uint64_t limit) const {
  std::uint64_t word = static_cast<std::uint64_t>(bits[0]) << 32 | bits[1];
  return static_cast<std::uint64_t>((static_cast<Int128>(word >> 1) * static_cast<Int128>(limit)) >>
                                    63);
}

RandomNumber random_number(std::uint64_t seed, std::uint64_t place) {
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return {philox({low(place), low(place >> 32), 0, 0}, {low(seed), low(seed >> 32)})};
}

}  // namespace reshard::sim
