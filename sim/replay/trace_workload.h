// SPDX-License-Identifier: BSD-3-Clause
// Converts a trace and its plans to the workload that the engine runs, and operations of the
// workload back to those of the trace.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// Throws InputError "FILE:LINE" for a rank without a device.
void check_ranks(const Trace& trace, const Topology& topology);

// The workload of a trace. A message becomes the operation of its send; a collective that its ranks
// call one by one becomes that of the first call. Recvs and the other calls become operations
// without ranks, so that numbers stay the same, and seats give each rank's part the place that its
// own line has. An `after` that names any of these lines waits for the whole operation. `plans` is
// indexed by operation, null for all but redistributions; `has_communicator` returns whether an
// operation is ordered by its communicator. The trace must have no findings.
Workload workload_of(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans,
                     const std::function<bool(OpId)>& has_communicator);

// The operation of the trace that describes the part of `rank` in operation `run` of the workload.
OpId stated_operation(const Workload& workload, OpId run, Rank rank);

}  // namespace reshard::sim
