// SPDX-License-Identifier: BSD-3-Clause
// The transfers under way: first waiting out their route's latency, then sharing capacity.
//
// A flow without bytes never shares. One that finds all its resources without flows is *sole*: what
// it gets and when it ends is known, and nothing is to be solved, until another flow comes to one
// of its resources; then it shares like all others, with what is left of it. It can only end later
// than was said.
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

// Resources that the longest route crosses.
std::size_t longest_route(const Topology& topology);

class Flows {
 public:
  // Tells the observer, where there is one, of rates; both must outlive the flows. `soles`: flows
  // may be sole, of which nobody is told.
  Flows(const Topology& topology, FlowObserver* observer, bool soles);

  // A transfer whose both ends are ready: its latency runs from now. Its number is free again after
  // close().
  struct Opened {
    std::int32_t flow;
    std::int64_t latency_ps;
  };
  Opened open(const Transit& transit, std::int64_t now_ps);
  // What it reaches of what it would alone, in millionths; from now on.
  void set_share(std::int32_t flow, std::int64_t share, std::int64_t now_ps);
  // What happens to links and ranks (fault.h), but for what ranks compute.
  void happen(const Fault& fault, std::int64_t now_ps);
  // A flow that waits for a link that is down; none: nobody does.
  struct Stopped {
    std::int32_t flow;
    ResourceId resource;
  };
  std::optional<Stopped> stopped() const;
  const Transit& transit(std::int32_t flow) const { return transits_[flow]; }
  std::int64_t start_ps(std::int32_t flow) const { return starts_ps_[flow]; }
  void close(std::int32_t flow);

  // The latency is over and there are bytes to move: the flow shares from now on, or is sole; then
  // it ends when it is said here, if ends_sole() agrees there.
  std::optional<std::int64_t> join(std::int32_t flow, std::int64_t now_ps);
  // The flow with that sequence() is sole still, and ends now.
  bool ends_sole(std::int32_t flow, std::int64_t sequence, std::int64_t now_ps);
  std::int64_t sequence(std::int32_t flow) const { return sequences_[flow]; }
  // Brings rates and finish times up to date after joins and retirements.
  void solve(std::int64_t now_ps);
  // MinimumTree::kNever when nothing shares.
  std::int64_t next_finish_ps() {
    return shares_ ? shares_->next_finish_ps() : MinimumTree::kNever;
  }
  // Flows that share and finish at the next finish, which is now, in the order in which they were
  // opened. They share no more; they are still open.
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
  // Of a flow that is sole.
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
  // None before the first flow: it is as large as the network, and where all steps are taken whole
  // (whole_steps.h) there never is a flow.
  std::optional<FairShare> shares_;
  // By flow.
  IndexVector<std::int32_t, Transit> transits_;
  IndexVector<std::int32_t, const RouteRule*> rules_;
  IndexVector<std::int32_t, std::int64_t> starts_ps_, sequences_;
  IndexVector<std::int32_t, Sole> soles_;
  IndexVector<std::int32_t, std::int64_t> allowed_;  // share, in millionths
  // When it last began to share, -1 before it does, and with how much work.
  IndexVector<std::int32_t, std::int64_t> shares_since_ps_;
  IndexVector<std::int32_t, Int128> shares_work_;
  std::vector<std::int32_t> free_;
  std::int64_t next_sequence_ = 0;
  // What the last one needed: flows of one step are often alike.
  struct {
    std::int64_t bytes = 0, rate = 0, duration_ps = 0;
  } last_sole_;
  // By resource.
  IndexVector<ResourceId, std::int32_t> sole_on_;  // kNone: no flow, or flows that share
  IndexVector<ResourceId, ResourceUse> uses_;
  IndexVector<std::size_t, RouteUse> route_uses_;
  IndexVector<ResourceId, std::int64_t> busy_since_ps_;
  std::vector<ResourceId> path_, changed_;  // reused between calls
  // Where faults happened: links that are down, flows that wait for one, with what is left of them
  // (shares_work_), and what is added to latencies.
  IndexVector<ResourceId, bool> down_;
  std::vector<std::int32_t> stopped_;
  IndexVector<ResourceId, std::int64_t> delays_ps_;
  std::map<Rank, std::int64_t> rank_delays_ps_;
};

}  // namespace reshard::sim
