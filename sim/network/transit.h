// SPDX-License-Identifier: BSD-3-Clause
// A transfer on its way between two parts of one operation.
#pragma once

#include <cstdint>

#include "core/base/ids.h"

namespace reshard::sim {

// What one run may ask for: transfers at one time (about 300 bytes each), and transfers of one step
// in all (hours of work beyond).
inline constexpr std::int64_t kMaxInFlight = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxStepTransfers = std::int64_t{1} << 34;

// Parts are numbered within the operation (operation_run.h).
struct Transit {
  OpId op;
  std::int32_t step;  // of the plan; -1 where there is none
  Rank source, destination;
  std::int32_t source_part, destination_part;
  std::int64_t bytes;
};

}  // namespace reshard::sim
