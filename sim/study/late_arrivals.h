// SPDX-License-Identifier: BSD-3-Clause
// Ranks that others wait for: where one rank comes to a collective so late that it matters.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/traffic/workload.h"

namespace reshard::sim {

// The last rank to come to an operation, behind all others.
struct LateArrival {
  OpId op;
  Rank rank;
  std::int64_t arrival_ps;
  std::int64_t late_ps;    // behind the last of the others
  std::int64_t waited_ps;  // by all others together
};

// Of bare collectives, of which all ranks wait for all; in the order of arrivals, then by
// operation. A rank is late when it comes later behind the others than these come behind
// each other, than the collective then takes, and than the twentieth part of the run, and has
// computed for most of that time: who only waited for somebody else is not to blame.
std::vector<LateArrival> late_arrivals(const Workload& workload, const Timeline& timeline);

}  // namespace reshard::sim
