// SPDX-License-Identifier: BSD-3-Clause
// Stragglers: ranks that reach a collective late enough to cost the run time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/traffic/workload.h"

namespace reshard::sim {

// The last rank to reach an operation.
struct LateArrival {
  OpId op;
  Rank rank;
  std::int64_t arrival_ps;
  std::int64_t late_ps;    // after the last of the others
  std::int64_t waited_ps;  // summed over the others
};

// Late arrivals at bare collectives, by arrival time, then by operation. A rank is late if its
// delay after the last of the others exceeds the spread of their arrivals, the time that the
// collective then takes, and a twentieth of the run; and if it computed for at least half of that
// delay, so that a rank which itself waited for another one is not blamed.
std::vector<LateArrival> late_arrivals(const Workload& workload, const Timeline& timeline);

}  // namespace reshard::sim
