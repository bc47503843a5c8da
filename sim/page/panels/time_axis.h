// SPDX-License-Identifier: BSD-3-Clause
// Time in pictures: the time axis, the colours of causes of waiting, the critical path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// ---- the time axis that pictures over time share, with ticks at round times

// Horizontal positions of times 0 .. end_ps, from `left` on.
struct TimeScale {
  std::int64_t end_ps;  // above 0
  double left, width;
  double x(std::int64_t ps) const {
    return left + width * static_cast<double>(ps) / static_cast<double>(end_ps);
  }
};

// All pictures over time have the same scale, so that one time is at one position in all of them.
// Names are to its left.
inline constexpr double kTimeWidth = 960;
TimeScale time_scale(std::int64_t end_ps);

struct TimeTick {
  std::int64_t ps;
  std::string text;  // "200 us"
};

// 0 and at most `most` multiples of 1, 2 or 5 times a power of ten; all in one unit.
std::vector<TimeTick> time_ticks(std::int64_t end_ps, int most);

// Lines from `top` to `bottom`, with their times below.
void draw_time_axis(Node svg, const TimeScale& scale, double top, double bottom);

// ---- causes of waiting; a cause has the same colour everywhere on a page

// The greatest causes have a colour each, all others share one. Compute has that of its slices.
struct CauseShare {
  std::string name, colour;  // colour: a class of the style
  std::int64_t time_ps;
};
// Most time first; the sum of the others, if there are any, last.
std::vector<CauseShare> shares_of(const PathFacts& path);

// The colour of a cause, which can be one of the others.
std::string colour_of(const std::vector<CauseShare>& shares, const std::string& cause);

// ---- the critical path above a timeline: what the run waits for at each time

inline constexpr double kPathStripHeight = 14;

// `plot` must begin at the left end of the scale.
void draw_path_strip(Node plot, const TimeScale& scale, double top, const PathFacts& path);

}  // namespace reshard::sim
