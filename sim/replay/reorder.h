// SPDX-License-Identifier: BSD-3-Clause
// Finds out whether another order of launches would end sooner.
//
// A launch that waits only for another one to end, on its stream or of its communicator, could have
// gone first. Such pairs are swapped, one at a time, on the rank where the launch waited; orders
// that hang are discarded. The search goes on from the best order for as long as a swap makes the
// run shorter.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/engine.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// On `rank` the operation `op` waited for `predecessor`.
struct Delayed {
  Rank rank;
  OpId op, predecessor;  // operations of the trace: those of this rank
  std::int64_t waited_ps;
  std::int64_t gain_ps;  // how much shorter the run is with the two swapped; 0 or less: no gain
  std::string name = {}, predecessor_name = {};  // names of the lines, else their kinds
};

struct Reordered {
  std::vector<Delayed> delayed;  // pairs that can be swapped, longest waits first
  // The swaps that lead to the best order found, in sequence; each puts `op` before `predecessor`.
  std::vector<Delayed> swaps;
  std::int64_t time_ps = 0;  // of the best order
  std::int64_t tried = 0;    // orders that were run
};

// `options` are those of the run that gave `timeline`, with the order and carriers of the workload.
// Without `search` each pair is only swapped by itself in the given order.
Reordered reorder(const Trace& trace, const Workload& workload, const Topology& topology,
                  const EngineOptions& options, const Timeline& timeline, bool search);

}  // namespace reshard::sim
