// SPDX-License-Identifier: BSD-3-Clause
// Random numbers by their position in a stream: Philox4x32-10, in which every block is a function
// of seed and counter only (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
#pragma once

#include <array>
#include <cstdint>

namespace reshard::sim {

using PhiloxBlock = std::array<std::uint32_t, 4>;
PhiloxBlock philox(PhiloxBlock counter, std::array<std::uint32_t, 2> key);

// One number of a stream: 128 bits, from which each distribution takes what it needs.
struct RandomNumber {
  PhiloxBlock bits;

  double unit() const;                             // [0, 1), a multiple of 2^-53
  double above_zero() const;                       // (0, 1]
  double normal() const;                           // mean 0, variance 1
  std::uint64_t below(std::uint64_t limit) const;  // 0 .. limit - 1, limit > 0
};

RandomNumber random_number(std::uint64_t seed, std::uint64_t place);

}  // namespace reshard::sim
