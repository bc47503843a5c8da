// SPDX-License-Identifier: BSD-3-Clause
// The time axis that pictures over time share: ticks at round times, so that one reads them off.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/picture/markup.h"

namespace reshard::sim {

// Horizontal places of times 0 .. end_ps, from `left` on.
struct TimeScale {
  std::int64_t end_ps;  // above 0
  double left, width;
  double x(std::int64_t ps) const {
    return left + width * static_cast<double>(ps) / static_cast<double>(end_ps);
  }
};

// All pictures over time are alike, so that what is one above the other is at one time. What they
// name stands left of it.
inline constexpr double kTimeWidth = 960;
TimeScale time_scale(std::int64_t end_ps);

struct TimeTick {
  std::int64_t ps;
  std::string text;  // "200 us"
};

// Multiples of 1, 2 or 5 times a power of ten, at most `most` of them beside 0; all in one unit.
std::vector<TimeTick> time_ticks(std::int64_t end_ps, int most);

// Lines from `top` to `bottom`, their times below.
void draw_time_axis(Node svg, const TimeScale& scale, double top, double bottom);

}  // namespace reshard::sim
