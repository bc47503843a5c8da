// SPDX-License-Identifier: BSD-3-Clause
// Slow and obvious progressive filling, once in integers with the same rounding down as the real
// one, and once in exact fractions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/integers.h"

namespace reshard::test {

struct SlowFlow {
  std::vector<std::int32_t> path;
  std::int64_t cap = 0;  // FairShare::kNoCap: none
};

// Rates by flow; 0 for flows that are not alive.
std::vector<std::int64_t> slow_integer_rates(const std::vector<std::int64_t>& capacities,
                                             const std::vector<SlowFlow>& flows,
                                             const std::vector<bool>& alive);

// In lowest terms, bottom > 0.
struct Fraction {
  Int128 top = 0, bottom = 1;
};
std::vector<Fraction> exact_rates(const std::vector<std::int64_t>& capacities,
                                  const std::vector<SlowFlow>& flows);

}  // namespace reshard::test
