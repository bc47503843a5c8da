// SPDX-License-Identifier: BSD-3-Clause
// Time across a picture: its axis, the colours of what is waited for, the critical path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// The time axis that pictures over time share: ticks at round times, so that one reads them off.

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

// What the time of a run is waited for has one colour on all of a page: the greatest causes one
// each, all others together one. Compute has that of its slices.

struct CauseShare {
  std::string name, colour;  // a class of the style
  std::int64_t time_ps;
};
// Most time first; the others, where there are any, last.
std::vector<CauseShare> shares_of(const PathFacts& path);

// Of a cause that may be among the others.
std::string colour_of(const std::vector<CauseShare>& shares, const std::string& cause);

// The critical path above a timeline: what the whole run waits for at each time, in the colours of
// the headline.

inline constexpr double kPathStripHeight = 14;

// `plot` begins where the scale does.
void draw_path_strip(Node plot, const TimeScale& scale, double top, const PathFacts& path);

}  // namespace reshard::sim
