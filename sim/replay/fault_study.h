// SPDX-License-Identifier: BSD-3-Clause
// The faults of a trace, in the form that the engine takes, and what they cost.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/fault.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// All faults except late ranks, which are setups of the workload. Throws InputError "FILE:LINE" for
// a link that the topology does not have.
std::vector<Fault> faults_of(const Trace& trace, const Topology& topology);
bool has_faults(const Trace& trace);

// The finding for a transfer that waits for ever, at the line of its operation.
TraceFinding finding_of(const Trace& trace, const TransferStopped& stopped);

// The workload without late ranks; operations keep their numbers.
Workload without_late_ranks(const Trace& trace, Workload workload);

// An operation that took longer with the faults than without, from its first start to its last end
// on any rank.
struct Grown {
  OpId op;
  std::int64_t ps;
};
struct FaultCost {
  std::int64_t without_ps = 0;  // the end of the run without faults
  std::vector<Grown> grown;     // by growth, descending
};
FaultCost cost_of(const Trace& trace, const Timeline& with, const Timeline& without);

}  // namespace reshard::sim
