// SPDX-License-Identifier: BSD-3-Clause
// The transfers under way: first waiting out their route's latency, then sharing capacity.
//
// A flow without bytes never shares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/network/flow_observer.h"
#include "sim/network/operation_run.h"
#include "sim/sharing/fair_share.h"
#include "sim/sharing/queues.h"

namespace reshard::sim {

// Resources that the longest route crosses.
std::size_t longest_route(const Topology& topology);

class Flows {
 public:
  // Tells the observer, where there is one; both must outlive the flows.
  Flows(const Topology& topology, FlowObserver* observer);

  // A transfer whose both ends are ready: its latency runs from now. Its number is free again after
  // close().
  struct Opened {
    std::int32_t flow;
    std::int64_t latency_ps;
  };
  Opened open(const Transit& transit, std::int64_t now_ps);
  const Transit& transit(std::int32_t flow) const { return transits_[flow]; }
  std::int64_t start_ps(std::int32_t flow) const { return starts_ps_[flow]; }
  void close(std::int32_t flow);

  // The latency is over and there are bytes to move: the flow shares from now on.
  void join(std::int32_t flow, std::int64_t now_ps);
  // Brings rates and finish times up to date after joins and retirements.
  void solve(std::int64_t now_ps);
  // MinimumTree::kNever when nothing shares.
  std::int64_t next_finish_ps() { return shares_.next_finish_ps(); }
  // Flows that finish at the next finish, which is now, in the order in which they were opened.
  // They share no more; they are still open.
  void retire(std::int64_t now_ps, std::vector<std::int32_t>& finished);

  // Bytes of all flows that joined, and the time during which each resource was shared by at least
  // one.
  const std::vector<ResourceUse>& uses() const { return uses_; }
  // What went by each rule of the topology.
  const std::vector<RouteUse>& route_uses() const { return route_uses_; }
  // The same of flows that were never opened.
  void add_use(ResourceId resource, const ResourceUse& use);
  void add_route_use(std::size_t rule, const RouteUse& use);
  bool idle() const { return free_.size() == transits_.size(); }

 private:
  const Topology& topology_;
  FlowObserver* observer_;
  FairShare shares_;
  // By flow.
  IndexVector<std::int32_t, Transit> transits_;
  IndexVector<std::int32_t, const RouteRule*> rules_;
  IndexVector<std::int32_t, std::int64_t> starts_ps_, sequences_;
  std::vector<std::int32_t> free_;
  std::int64_t next_sequence_ = 0;
  // By resource.
  IndexVector<ResourceId, ResourceUse> uses_;
  IndexVector<std::size_t, RouteUse> route_uses_;
  IndexVector<ResourceId, std::int64_t> busy_since_ps_;
  std::vector<ResourceId> path_, changed_;  // reused between calls
};

}  // namespace reshard::sim
