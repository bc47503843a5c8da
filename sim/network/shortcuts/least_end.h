// SPDX-License-Identifier: BSD-3-Clause
// The least time at which a run can still end, from the bytes that every link has still to carry.
// A plan that idles its busiest link early is known to exceed a limit long before it reaches it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/topology/topology.h"
#include "sim/network/flows.h"
#include "sim/network/operation_run.h"

namespace reshard::sim {

class LeastEnd {
 public:
  // For runs that matter up to this time, above 0, and are then looked at some times on the way.
  LeastEnd(const Topology& topology, std::int64_t limit_ps);

  bool is_due(std::int64_t now_ps) const { return now_ps >= next_ps_; }
  // If that exceeds the limit; else now. `run` is the only operation of the workload, from its start
  // on, and `flows` has its transfers and no fault. Rounds of collectives are not counted.
  std::int64_t at(std::int64_t now_ps, const OperationRun& run, const Flows& flows);

 private:
  void count(const OperationRun& run);

  const Topology& topology_;
  std::int64_t limit_ps_, interval_ps_, next_ps_;
  bool counted_ = false;
  IndexVector<ResourceId, Int128> bytes_;  // of all messages
  std::vector<ResourceId> used_;           // those that have some
  IndexVector<ResourceId, Int128> work_;   // of flows, reused between calls
};

}  // namespace reshard::sim
