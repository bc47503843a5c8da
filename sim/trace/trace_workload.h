// SPDX-License-Identifier: BSD-3-Clause
// From a trace and its plans to what the engine runs, and whether that can run at all.
//
// Operation i of the workload is operation i of the trace. A message is the operation of its send;
// its recv keeps its place in line as an operation without ranks, so that the receiving end stands
// in its stream where its line does. Who names either end in `after` waits for the message.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/schedule/workload.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// `plans` by operation, null where the operation is no redistribution. The trace must have no
// findings.
Workload workload_of(const Trace& trace, const std::vector<std::shared_ptr<const Plan>>& plans);

// Operations that wait for each other for ever: streams whose sends and recvs never meet, an
// `after` against the order of a stream. Ranks must lie below `devices`. The workload is run with
// transfers and compute that take no time; what a rank can do next depends on no time, so that what
// blocks here blocks always.
std::optional<TraceFinding> find_deadlock(const Trace& trace, const Workload& workload,
                                          std::int32_t devices);

}  // namespace reshard::sim
