// SPDX-License-Identifier: BSD-3-Clause
// The flow-level engine: runs a workload on a topology and says what ran when, in integer
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
  // Run every transfer also where what a step takes is known without (whole_steps.h), and always
  // where flows are recorded. The answer is the same.
  bool run_transfers = false;
  // A run that takes longer stops behind it: then end_ps is above it, and that is all that is
  // known.
  std::int64_t limit_ps = std::numeric_limits<std::int64_t>::max();
  Carriers carriers = {};
  const Order* order = nullptr;        // of the workload; null: by the usual rules
  std::span<const Fault> faults = {};  // of resources and ranks of the topology
  WaitLog* waits = nullptr;            // filled where it is there; must be empty
  FlowObserver* observer = nullptr;    // told of flows where it is there
};

// What a run refuses because of one operation: an InputError that does not say which; where
// operations have names, the caller does.
struct OperationRefused : InputError {
  OperationRefused(OpId of, const std::string& what) : InputError(what), operation(of) {}
  OpId operation;
};

// Throws InputError (OperationRefused where one operation is at fault) when a rank has no device,
// more flows share a resource than it has bytes per second, a collective names a rank twice, time
// passes 2^62 ps, or the run is beyond the limits of core/base/limits.h; TransferStopped where a
// link that is down keeps a transfer for ever; CheckFailure, naming the operations, on a workload
// that cannot finish.
Timeline run(const Workload& workload, const Topology& topology, const EngineOptions& options = {});

// Time of one plan alone, without recording anything.
std::int64_t time_of(const Plan& plan, const Topology& topology);

}  // namespace reshard::sim
