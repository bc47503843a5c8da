// SPDX-License-Identifier: BSD-3-Clause
// The earliest time at which a run can end, from the bytes that every link still has to carry. If a
// plan leaves its busiest link idle early on, it is known to exceed a limit long before it does.
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
  // For runs that only matter if they end by `limit_ps`, which is above 0. They are examined
  // several times before then.
  LeastEnd(const Topology& topology, std::int64_t limit_ps);

  bool is_due(std::int64_t now_ps) const { return now_ps >= next_ps_; }
  // At least `now_ps`. `run` must be the only operation of the workload; `flows` must have its
  // transfers and no fault. Rounds of collectives are not counted.
  std::int64_t at(std::int64_t now_ps, const OperationRun& run, const Flows& flows);

 private:
  void count(const OperationRun& run);

  const Topology& topology_;
  std::int64_t limit_ps_, interval_ps_, next_ps_;
  bool counted_ = false;
  IndexVector<ResourceId, Int128> bytes_;  // of all messages
  std::vector<ResourceId> used_;           // resources with bytes
  IndexVector<ResourceId, Int128> work_;   // of flows, reused between calls
};

}  // namespace reshard::sim
