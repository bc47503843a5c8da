// SPDX-License-Identifier: BSD-3-Clause
// What several runs of one plan took, step by step and in all: the median says what is usual, least
// and most how far runs are apart.
//
// A step lasts from the start of its first part to the end of its last, over all ranks, as in the
// simulation that it is set beside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/plan/timeline.h"

namespace reshard::sim {

// The median is the middle of the sorted values, of an even number the lower of the two: always a
// value that was measured.
struct Spread {
  std::int64_t median_ps = 0, min_ps = 0, max_ps = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
// At least one value.
Spread spread_of(std::vector<std::int64_t> values_ps);

struct MeasuredTimes {
  std::vector<std::optional<Spread>> steps;  // by step; none where nobody has a part
  Spread total;
  std::size_t median_run = 0;  // the run whose total is the median, the earliest of equals
};

// At least one run; spans of all ranks.
MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count);

}  // namespace reshard::sim
