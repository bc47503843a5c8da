// SPDX-License-Identifier: BSD-3-Clause
// The critical path above a timeline: what the whole run waits for at each time, in the colours of
// the headline.
#pragma once

#include "sim/page/time_axis.h"
#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

inline constexpr double kPathStripHeight = 14;

// `plot` begins where the scale does.
void draw_path_strip(Node plot, const TimeScale& scale, double top, const PathFacts& path);

}  // namespace reshard::sim
