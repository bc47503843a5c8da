// SPDX-License-Identifier: BSD-3-Clause
// One run of the engine, with everything that reports need from it: spans, flows, the rates of
// links over time, and the causes of waiting.
#pragma once

#include <optional>
#include <vector>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/engine.h"
#include "sim/study/critical_path.h"
#include "sim/study/recording.h"

namespace reshard::sim {

struct RecordedRun {
  Timeline timeline;
  // The parts in order of time, without gaps: the first starts at 0, the last ends with the run,
  // none is empty, and neighbours differ in more than time. None if it was not recorded, or the run
  // has more than WaitLog::kMaxWaits waits or LimitLog::kMaxChanges changes of limits.
  std::optional<std::vector<PathPart>> path;
};

// Runs the workload once. `what` overrides the fields of `options` about recording. Throws what
// run() throws. A run that stops at options.limit_ps has no path.
RecordedRun record(const Workload& workload, const Topology& topology, const Recording& what,
                   EngineOptions options = {});

}  // namespace reshard::sim
