// SPDX-License-Identifier: BSD-3-Clause
// The transfers under way: first waiting out their route's latency, then sharing capacity.
//
// A sharing flow has a rate, the work that remained when the rate was set (128 bits, in 10^-12
// byte, so that rate x time is exact) and the instant at which it finishes if the rate stays: now +
// ceil(remaining / rate). All three change only when the rate does. A flow without bytes never
// shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/network/fair_share.h"
#include "sim/network/flow_observer.h"
#include "sim/network/operation_run.h"
#include "sim/network/queues.h"

namespace reshard::sim {

// now + delay. Throws InputError beyond kMaxTimePs.
std::int64_t later_ps(std::int64_t now_ps, Int128 delay_ps);

class Flows {
 public:
  // Tells the observer, where there is one; both must outlive the flows.
  Flows(const Topology& topology, FlowObserver* observer);

  // A transfer whose both ends are ready: its latency runs from now. Returns its number, which is
  // free again after close().
  std::int32_t open(const Transit& transit, std::int64_t now_ps);
  std::int64_t latency_ps(std::int32_t flow) const;
  const Transit& transit(std::int32_t flow) const { return transits_[flow]; }
  std::int64_t start_ps(std::int32_t flow) const { return starts_ps_[flow]; }
  void close(std::int32_t flow);

  // The latency is over and there are bytes to move: the flow shares from now on.
  void join(std::int32_t flow, std::int64_t now_ps);
  // Brings rates and finish times up to date after joins and retirements.
  void solve(std::int64_t now_ps);
  // MinimumTree::kNever when nothing shares.
  std::int64_t next_finish_ps() { return finishes_ps_.minimum(); }
  // Flows that finish at the next finish, which is now, in the order in which they were opened.
  // They share no more; they are still open.
  void retire(std::int64_t now_ps, std::vector<std::int32_t>& finished);

  // Bytes of all flows that joined, and the time during which each resource was shared by at least
  // one.
  const std::vector<ResourceUse>& uses() const { return uses_; }

 private:
  const Topology& topology_;
  FlowObserver* observer_;
  FairShare shares_;
  MinimumTree finishes_ps_;
  // By flow.
  IndexVector<std::int32_t, Transit> transits_;
  IndexVector<std::int32_t, std::int64_t> starts_ps_, sequences_, changed_ps_;
  IndexVector<std::int32_t, Int128> remaining_;  // at changed_ps_
  std::vector<std::int32_t> free_;
  std::int64_t next_sequence_ = 0;
  // By resource.
  IndexVector<ResourceId, ResourceUse> uses_;
  IndexVector<ResourceId, std::int64_t> busy_since_ps_;
  // Reused between calls.
  std::vector<FairShare::Change> changes_;
  std::vector<ResourceId> path_;
};

}  // namespace reshard::sim
