// SPDX-License-Identifier: BSD-3-Clause
// Whether another order of launches would end sooner.
//
// A launch that waits for nothing but the end of another one, on its stream or of its communicator,
// might have gone first. Such pairs of neighbours are swapped, one at a time, on the rank where the
// one waited; an order that hangs is none. The search goes on from the best order as long as a swap
// makes the run shorter.
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

// On `rank` the operation `op` waited for `behind`; lines of the trace that say them there.
struct Delayed {
  Rank rank;
  OpId op, behind;
  std::int64_t waited_ps;
  std::int64_t gain_ps;  // what the run is shorter when they are swapped; 0 or less: nothing
  std::string name = {}, behind_name = {};  // of the lines, or what they are
};

struct Reordered {
  std::vector<Delayed> delayed;  // pairs that can be swapped, the longest waits first
  // The best order that was found: `op` before `behind`, in the order in which they were swapped.
  std::vector<Delayed> swaps;
  std::int64_t time_ps = 0;  // of it
  std::int64_t tried = 0;    // orders that were run
};

// `options` are those of the run that gave `timeline`, with the order and carriers of the workload.
// Without `search` each pair is swapped alone and nothing more.
Reordered reorder(const Trace& trace, const Workload& workload, const Topology& topology,
                  const EngineOptions& options, const Timeline& timeline, bool search);

}  // namespace reshard::sim
