// SPDX-License-Identifier: BSD-3-Clause
// Max-min fair rates of flows that share resources, in integers.
//
// The problem. Flow f crosses the resources P(f) and may have a cap k(f); resource r has the
// capacity C(r), all in bytes/s. Rates x(f) are max-min fair when
//
//     for every r:   sum of x(f) over f crossing r  <=  C(r)
//     for every f:   x(f) <= k(f)
//     no x(f) can rise without lowering an x(g) <= x(f).
//
// The method is progressive filling. While flows are without a rate ("free"), each resource that
// free flows cross offers
//
//     share(r) = floor( (C(r) - rates already given on r) / free flows on r )
//
// The *bottleneck* is the smallest (share, resource id); its free flows get its share and are no
// longer free. A cap is a resource of one flow: it comes before every resource of an equal share;
// caps among themselves need no order, since equal ones give equal rates. The floor is the only
// rounding, and it leaves less than one byte/s per flow of a resource unused.
//
// Three facts make it fast and change nothing in the result:
//   1. Shares never fall while filling: what a bottleneck's flow takes from another resource is at
//      most that resource's own share. So a resource whose (share, id) is smallest among the
//      resources that its own free flows cross, and below their caps, may be filled at once,
//      whatever the rest of the network offers: only these could take its flows, and as their
//      shares do not fall it comes before each of them in the order of all, at this share. Filling
//      takes the order of the solution before, which is nearly right, and where a flow's other
//      resource comes first fills that one first; no order is kept.
//   2. Shares ascend from bottleneck to bottleneck. A flow that leaves was free in all filling
//      rounds of shares below its rate and only made other shares smaller, so those rounds stay as
//      they were; a flow that arrives cannot be rated below floor(C(r) / flows on r) of its
//      resources, so rounds below that stay too. A new solution starts there: flows of smaller
//      rates keep them and count as taken capacity, and of the rest only those that hang together
//      with a touched resource through flows not kept are filled again.
//   3. From one solution to the next nearly all flows keep their bottleneck, whatever happens to
//      its share. So flows are held by bottleneck (flow_groups.h), each with the other resources
//      that it crosses beside it; a new share is one number for all flows of a group, and filling
//      looks for a bottleneck's free flows among all that cross it only when it has more of them
//      than its group.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/base/integers.h"
#include "sim/sharing/flow_groups.h"

namespace reshard::sim {

class FairShare {
 public:
  static constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

  // Capacities by ResourceId, each >= 1; no flow crosses more than `max_hops` resources.
  FairShare(const std::vector<std::int64_t>& capacities, std::size_t max_hops);

  // Flows are numbered by the caller, densely. A flow gets its rate at the next solve(). `path`
  // names at least one resource and none twice; cap >= 1. No resource may be crossed by more flows
  // than it has bytes/s. `work` is what the flow has to do, in 10^-12 byte.
  void add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap, Int128 work);
  void remove(std::int32_t flow, std::int64_t now_ps);
  // Of a resource that no flow crosses, from now on; at least 1.
  void set_capacity(ResourceId resource, std::int64_t capacity);
  // Brings all rates and finishes up to date. `changed` becomes the resources whose flows may have
  // other rates than before, some of them twice.
  void solve(std::int64_t now_ps, std::vector<ResourceId>* changed = nullptr);

  std::int64_t rate(std::int32_t flow) const { return groups_.rate(flow); }
  std::int64_t next_finish_ps() { return groups_.next_finish_ps(); }
  // Appends the flows that finish at the next finish, which is now, in no particular order. To be
  // removed.
  void find_finished(std::int64_t now_ps, std::vector<std::int32_t>& out) {
    groups_.find_finished(now_ps, out);
  }
  // Flows that cross the resource now.
  std::int32_t load(ResourceId resource) const {
    return static_cast<std::int32_t>(resources_[resource].flows.size());
  }
  std::int64_t capacity(ResourceId resource) const { return resources_[resource].capacity; }
  // Of all flows that cross the resource, as of the last solution and the flows removed since.
  std::int64_t used(ResourceId resource) const {
    return capacity(resource) - static_cast<std::int64_t>(rest_[resource]);
  }
  // What a flow that finishes now has done beyond its work, since it ends at a whole picosecond.
  Int128 excess(std::int32_t flow, std::int64_t now_ps) const {
    return groups_.excess(flow, now_ps);
  }
  // What keeps the rate of a flow from rising: a resource, none where it is the cap.
  std::optional<ResourceId> limit(std::int32_t flow) const;
  std::span<const ResourceId> path(std::int32_t flow) const {
    const ResourceId* hops = &paths_[to_index(flow) * stride_];
    std::size_t count = stride_;
    while (hops[count - 1] == nowhere_) --count;
    return {hops, count};
  }

 private:
  struct Resource {
    std::int64_t capacity = 0;
    std::int32_t epoch = 0;      // of the last solution that filled it
    std::int32_t group = -1;     // of the flows that it limits; -1 before it ever did
    std::int32_t outsiders = 0;  // flows that are in no group
    std::vector<std::int32_t> flows = {};
  };
  // What is to be filled next: a resource, or a flow by its cap.
  struct NextLimit {
    ResourceId resource;
    std::int32_t flow = -1;
  };
  // The flows whose rate is a resource's share.
  struct Group {
    ResourceId limit;
    std::vector<std::int32_t> flows;
    std::vector<ResourceId> others;  // by flow the rest of its path: `stride_` - 1, with `nowhere_`
  };

  // Calls visit(resource) for every resource on the flow's path, and for `nowhere_`.
  template <class Visit>
  void for_each_hop(std::int32_t flow, Visit&& visit) const {
    for (std::size_t hop = to_index(flow) * stride_, end = hop + stride_; hop < end; ++hop)
      visit(paths_[hop]);
  }

  std::int64_t share(ResourceId id) const {
    return static_cast<std::int64_t>(rest_[id] / static_cast<std::uint64_t>(free_[id]));
  }
  // The flows of a group, or without a rate, are free.
  bool is_open(std::int32_t group) const { return open_[group + kStates] == epoch_; }
  void next_epoch();
  void solve_parts(std::int64_t now_ps);
  void solve_all(std::int64_t now_ps);
  void join(std::int32_t flow, std::int32_t group, std::int64_t now_ps);
  void leave(std::int32_t flow, std::int64_t now_ps);
  bool take_alone(std::int32_t flow, std::int64_t now_ps);
  void take_back(ResourceId id, std::int64_t rate);
  bool may_enter(std::int32_t group) const;
  void enter_group(std::int32_t group);
  void enter_outsiders(ResourceId resource, std::int64_t now_ps);
  bool enter_crossing_groups();
  void collect(ResourceId root, std::int64_t now_ps);
  void collect_all(std::int64_t now_ps);
  bool offers_less(ResourceId id, std::int64_t share) const {
    return Int128{share} * free_[id] > Int128{rest_[id]};
  }
  void give(ResourceId id, std::int64_t rate) {
    rest_[id] -= static_cast<std::uint64_t>(rate);
    --free_[id];
  }
  void give(const Group& group, std::int64_t rate) {
    rest_[group.limit] -= static_cast<std::uint64_t>(rate) * group.flows.size();
    free_[group.limit] -= static_cast<std::int64_t>(group.flows.size());
    for (ResourceId hop : group.others) give(hop, rate);
  }

  // filling.cpp
  bool all_offer_more(std::span<const ResourceId> ids, std::int64_t share);
  void ask(const Group& bottleneck, std::int64_t share);
  void choose_free(ResourceId limit, std::size_t count);
  std::int32_t group_at(ResourceId limit, std::int64_t share, std::int64_t now_ps);
  bool give_cap(std::int32_t flow, std::int64_t now_ps);
  bool give_all(ResourceId bottleneck, std::int64_t now_ps);
  void fill_from(ResourceId resource, std::int64_t now_ps);
  void fill(std::int64_t now_ps);
  void fill_again(std::int64_t now_ps);

  std::size_t stride_;
  ResourceId nowhere_;
  static constexpr std::int64_t kNowhere = -(std::int64_t{1} << 62);
  IndexVector<ResourceId, Resource> resources_;
  // What a resource has to give: capacity that no flow has, and, while filling, free flows. Filling
  // does little else than change these. `nowhere_` has no capacity, and less than no free flows, so
  // that it is never of a part and never offers less than another.
  IndexVector<ResourceId, std::uint64_t> rest_;
  IndexVector<ResourceId, std::int64_t> free_;
  FlowGroups groups_;
  IndexVector<std::int32_t, Group> members_;       // by group
  IndexVector<std::int32_t, std::int32_t> seats_;  // by flow: where it stands in its group
  // The solution in which a group's flows are free; before the groups the two states without one.
  static constexpr std::int32_t kStates = 2;
  IndexVector<std::int32_t, std::int32_t> open_ = std::vector<std::int32_t>(kStates, 0);
  IndexVector<std::int32_t, std::int32_t> entered_;  // by flow outside: when it was last free
  IndexVector<std::int32_t, std::int64_t> caps_;     // by flow; kNoCap where it cannot bind
  // `stride_` entries per flow: its path, filled up with `nowhere_`, and where it stands in each
  // resource's list.
  std::vector<ResourceId> paths_;
  std::vector<std::int32_t> positions_;
  // The change since the last solution: new flows, resources that flows have left, and the rate
  // below which all others stay.
  std::vector<std::int32_t> new_;
  std::vector<ResourceId> touched_;
  std::int64_t keep_below_ = kNoCap;
  std::int32_t epoch_ = 0;
  std::vector<ResourceId>* changed_ = nullptr;  // of the solution in the making, where asked for
  std::int64_t capped_ = 0;                     // flows that a cap may bind
  // The most flows that ever crossed one resource, and what times their number is below 2^64.
  std::int32_t most_flows_ = 1;
  std::uint64_t most_share_ = std::numeric_limits<std::uint64_t>::max();
  // After a part that was half of the network or more so many solutions ask no more what hangs
  // together and fill all: that is never wrong, and slower only for so long.
  static constexpr std::int32_t kWhole = 63;
  std::int32_t whole_ = 0;
  // One connected part of a solution in the making.
  std::vector<ResourceId> part_;
  std::vector<std::pair<std::int64_t, ResourceId>> order_;
  std::vector<ResourceId> filled_, last_filled_;  // in this order
  std::vector<NextLimit> candidates_;
  Group chosen_;
};

}  // namespace reshard::sim
