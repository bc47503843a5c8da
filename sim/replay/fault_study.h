// SPDX-License-Identifier: BSD-3-Clause
// The faults of a trace: what the engine is told of them, and what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/fault.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// But for ranks that come late, which are setups of the workload. Throws InputError "FILE:LINE" for
// a link that the topology does not have.
std::vector<Fault> faults_of(const Trace& trace, const Topology& topology);
bool has_faults(const Trace& trace);

// A transfer that waits for ever, at its line.
TraceFinding told(const Trace& trace, const TransferStopped& stopped);

// The workload as it would be if nobody came late; operations keep their numbers.
Workload without_late_ranks(const Trace& trace, Workload workload);

// An operation that took longer than without the faults, from its first start to its last end.
struct Grown {
  OpId op;
  std::int64_t ps;
};
struct FaultCost {
  std::int64_t without_ps = 0;  // the end of the run without them
  std::vector<Grown> grown;     // those that grew, the most first
};
FaultCost cost_of(const Trace& trace, const Timeline& with, const Timeline& without);

}  // namespace reshard::sim
