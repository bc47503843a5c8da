// SPDX-License-Identifier: BSD-3-Clause
// From a trace and its plans to what the engine runs, and back.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// Throws InputError "FILE:LINE" for a rank without a
// device.
void check_ranks(const Trace& trace, const Topology& topology);

// What the engine runs. A message is the operation of its
// send, a collective that its ranks call one by one that of the first call; the other lines keep
// their places as operations without ranks, so that each end stands in its stream where it does in
// the trace. Who names any of them in `after` waits for all. `plans` by operation, null where it is
// no redistribution; `has_communicator` says which operations are bound to theirs. The trace must
// have no findings.
Workload workload_of(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans,
                     const std::function<bool(OpId)>& has_communicator);

// The operation of the trace that says what a rank does in one that runs.
OpId said_by(const Workload& workload, OpId run, Rank rank);

}  // namespace reshard::sim
