// SPDX-License-Identifier: BSD-3-Clause
// The flow-level engine: runs a workload on a topology and reports what ran when, in integer
// picoseconds.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "core/base/errors.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/network/carrier.h"
#include "sim/network/fault.h"
#include "sim/network/flow_observer.h"
#include "sim/network/order.h"
#include "sim/network/wait_log.h"

namespace reshard::sim {

struct EngineOptions {
  bool record_flows = false;  // fill Timeline::flows
  bool record_spans = true;   // fill Timeline::spans
  // Run every transfer, even if the duration of a step is known without it
  // (shortcuts/whole_steps.h); implied by record_flows, faults, waits and observer. The result is
  // the same.
  bool run_transfers = false;
  // A run may stop once it is certain to end after this time; end_ps is then above it and not above
  // the run's true end, and no other result is valid.
  std::int64_t limit_ps = std::numeric_limits<std::int64_t>::max();
  Carriers carriers = {};
  const Order* order = nullptr;        // of the workload; null: by the default rules
  std::span<const Fault> faults = {};  // of resources and ranks of the topology
  WaitLog* waits = nullptr;            // filled unless null; must be empty
  FlowObserver* observer = nullptr;    // notified of flows unless null
};

// A run was refused because of one operation. The message does not name it; a caller that has names
// for operations adds the name.
struct OperationRefused : InputError {
  OperationRefused(OpId of, const std::string& what) : InputError(what), operation(of) {}
  OpId operation;
};

// Throws InputError (OperationRefused if one operation is at fault) if a rank has no device, more
// flows share a resource than it has bytes per second, a collective names a rank twice, time passes
// 2^62 ps, or the run exceeds the limits of core/base/limits.h; TransferStopped if a link that is
// down holds a transfer forever; CheckFailure, naming the operations, on a workload that cannot
// finish.
Timeline run(const Workload& workload, const Topology& topology, const EngineOptions& options = {});

// How many runs this thread has begun, for tests that count them.
std::int64_t runs_begun();

// Time of one plan alone, without recording anything.
std::int64_t time_of(const Plan& plan, const Topology& topology);

}  // namespace reshard::sim
