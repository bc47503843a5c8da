// SPDX-License-Identifier: BSD-3-Clause
// The transfers in progress: first waiting for their route's latency, then sharing capacity.
//
// A flow without bytes never shares. A flow on resources without other flows is *sole*: its rate
// and its end are known and nothing needs solving, until another flow arrives at one of its
// resources. Then it shares like all others, with its remaining work, and can only end later than
// predicted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/network/fault.h"
#include "sim/network/flow_observer.h"
#include "sim/network/operation_run.h"
#include "sim/sharing/fair_share.h"
#include "sim/sharing/queues.h"

namespace reshard::sim {

// Number of resources that the longest route crosses.
std::size_t longest_route(const Topology& topology);

class Flows {
 public:
  // Notifies the observer, unless null, of rates; both must outlive this object. `soles`: flows may
  // be sole; the observer is not notified of those.
  Flows(const Topology& topology, FlowObserver* observer, bool soles);

  // Opens a transfer with both ends ready: its latency starts now. Its number is reused
  // after close().
  struct Opened {
    std::int32_t flow;
    std::int64_t latency_ps;
  };
  Opened open(const Transit& transit, std::int64_t now_ps);
  // Limits the flow from now on to this share, in millionths, of the rate that it would have alone.
  void set_share(std::int32_t flow, std::int64_t share, std::int64_t now_ps);
  // Applies a fault (fault.h), except to compute rates.
  void happen(const Fault& fault, std::int64_t now_ps);
  // A flow that waits for a link that is down; none: no flow does.
  struct Stopped {
    std::int32_t flow;
    ResourceId resource;
  };
  std::optional<Stopped> stopped() const;
  const Transit& transit(std::int32_t flow) const { return transits_[flow]; }
  std::int64_t start_ps(std::int32_t flow) const { return starts_ps_[flow]; }
  void close(std::int32_t flow);

  // The latency is over and there are bytes to move: the flow shares from now on, or is sole. For a
  // sole flow returns its end, at which it ends only if ends_sole() confirms it then.
  std::optional<std::int64_t> join(std::int32_t flow, std::int64_t now_ps);
  // Ends the flow if it has this sequence(), is still sole and ends now; returns whether it did.
  bool ends_sole(std::int32_t flow, std::int64_t sequence, std::int64_t now_ps);
  std::int64_t sequence(std::int32_t flow) const { return sequences_[flow]; }
  // Brings rates and finish times up to date after joins and retirements.
  void solve(std::int64_t now_ps);
  // MinimumTree::kNever when nothing shares.
  std::int64_t next_finish_ps() {
    return shares_ ? shares_->next_finish_ps() : MinimumTree::kNever;
  }
  // Flows that share and finish at the next finish time, which must be now, in the order in which
  // they were opened. They stop sharing but stay open.
  void retire(std::int64_t now_ps, std::vector<std::int32_t>& finished);

  // Adds the remaining work of every flow that has joined, in 10^-12 byte, to each resource that it
  // crosses. No fault may have happened.
  void add_work_left(std::int64_t now_ps, IndexVector<ResourceId, Int128>& to) const;

  // Bytes of all flows that joined, and the time during which at least one shared each resource.
  const std::vector<ResourceUse>& uses() const { return uses_; }
  // Bytes and flows by route rule of the topology.
  const std::vector<RouteUse>& route_uses() const { return route_uses_; }
  // Adds the same for flows that were never opened.
  void add_use(ResourceId resource, const ResourceUse& use);
  void add_route_use(std::size_t rule, const RouteUse& use);
  bool idle() const { return free_.size() == transits_.size(); }

 private:
  // State of a sole flow.
  struct Sole {
    std::int64_t start_ps = 0, end_ps = kNone, rate = 0, cap = 0;
  };
  static constexpr std::int32_t kNone = -1;

  void begin_sharing();
  void find_path(std::int32_t flow);
  std::int64_t cap_of(std::int32_t flow) const;
  bool is_down(ResourceId resource) const { return !down_.empty() && down_[resource]; }
  std::int64_t delay_ps(std::int32_t flow);
  bool waits_for_link(std::int32_t flow);
  Int128 take_out(std::int32_t flow, std::int64_t now_ps);
  void set_capacity(ResourceId resource, std::int64_t share, std::int64_t now_ps);
  bool is_alone(std::int64_t now_ps) const;
  std::int64_t begin_sole(std::int32_t flow, std::int64_t cap, std::int64_t now_ps);
  void end_sole(std::int32_t flow, std::int64_t now_ps);
  void end_sole_on(ResourceId resource, std::int64_t now_ps);
  void share(std::int32_t flow, std::int64_t cap, Int128 work, std::int64_t now_ps);

  const Topology& topology_;
  FlowObserver* observer_;
  bool soles_allowed_;
  // None before the first flow: it is as large as the network, and if all steps are taken whole
  // (shortcuts/whole_steps.h), there is never a flow.
  std::optional<FairShare> shares_;
  // By flow.
  IndexVector<std::int32_t, Transit> transits_;
  IndexVector<std::int32_t, const RouteRule*> rules_;
  IndexVector<std::int32_t, std::int64_t> starts_ps_, sequences_;
  IndexVector<std::int32_t, Sole> soles_;
  IndexVector<std::int32_t, std::int64_t> allowed_;  // share, in millionths
  // When it last began to share, -1 before it does, and its work then.
  IndexVector<std::int32_t, std::int64_t> shares_since_ps_;
  IndexVector<std::int32_t, Int128> shares_work_;
  std::vector<std::int32_t> free_;
  std::int64_t next_sequence_ = 0;
  // Duration of the last sole flow: flows of one step are often equal.
  struct {
    std::int64_t bytes = 0, rate = 0, duration_ps = 0;
  } last_sole_;
  // By resource.
  IndexVector<ResourceId, std::int32_t> sole_on_;  // kNone: no flow, or flows that share
  IndexVector<ResourceId, ResourceUse> uses_;
  IndexVector<std::size_t, RouteUse> route_uses_;
  IndexVector<ResourceId, std::int64_t> busy_since_ps_;
  // Reused between calls.
  std::vector<ResourceId> path_;
  FairShare::Changes changes_;
  // State of faults: links that are down, flows that wait for one (with their remaining work in
  // shares_work_), and additions to latencies.
  IndexVector<ResourceId, bool> down_;
  std::vector<std::int32_t> stopped_;
  IndexVector<ResourceId, std::int64_t> delays_ps_;
  std::map<Rank, std::int64_t> rank_delays_ps_;
};

}  // namespace reshard::sim
