// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch's choices cost more than those by time over the whole trace, call by call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/dispatch/dispatched.h"

namespace reshard::sim {

// Of redistributions, each alone: their times and bytes summed.
struct Moved {
  std::int64_t count = 0, time_ps = 0, bytes = 0;
  Moved& operator+=(const Moved& more);
};
// What a call moves, copies that serve again left out.
Moved moved_by(const DispatchedCall& call);

struct RegretRow {
  std::int64_t line;
  std::string call, module;
  Moved torch, best;
  std::string why;
};

struct Regret {
  // Implicit and explicit together; of these implicit.
  Moved torch, best, torch_implicit, best_implicit;
  std::vector<RegretRow> rows;  // lines that move otherwise, in the order of the trace
};

// Both lists have the same lines, and figures.
Regret regret_of(const std::vector<DispatchedCall>& torch, const std::vector<DispatchedCall>& best);

}  // namespace reshard::sim
