// SPDX-License-Identifier: BSD-3-Clause
// A trace repeats itself: tensors of the same layer kind differ in name only.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/replay/replay.h"

namespace reshard::sim {

// Redistributions of one request by one planner; from start to end of each in the run, summed.
struct RequestKind {
  const ReplayRow* first = nullptr;
  std::int64_t count = 0, bytes = 0, time_ps = 0;
};

// In order of first appearance; points into `rows`.
std::vector<RequestKind> kinds_of(const std::vector<ReplayRow>& rows);

}  // namespace reshard::sim
