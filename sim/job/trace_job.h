// SPDX-License-Identifier: BSD-3-Clause
// A trace carried through once: its operator calls are decided and computed, its redistributions
// planned, proved and moved, and everything is timed together.
#pragma once

#include <memory>

#include "core/planners/planner.h"
#include "core/topology/topology.h"
#include "sim/dispatch/dispatch.h"
#include "sim/replay/replay.h"
#include "sim/study/studies.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

struct TraceJobOptions {
  StudyOptions studies;
  // run_trace() sets its functions and figures. With ReplayOptions::move_bytes, the values of calls
  // are computed as well.
  DispatchOptions dispatch;
  ReplayOptions replay;
  // Every set of redistributions that can be moved together (sim/trace/jobs/joined.h) is one job.
  // Without it, the report shows where that would be faster, for traces without calls, of no more
  // operations than others are reordered, and sets of no more shards than kMostShardsTried (job.h).
  bool joined = false;
};

// Throws what dispatch() and replay() throw. The report has findings and nothing else if a call
// cannot run, values are wrong, or the trace hangs.
ReplayReport run_trace(Trace& trace, const std::shared_ptr<const Topology>& topology,
                       const PlannerRow& planner, const TraceJobOptions& options);

}  // namespace reshard::sim
