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
//      most that resource's own share. So a heap with outdated keys works: a resource on top whose
//      share has risen meanwhile is put back.
//   2. Shares ascend from bottleneck to bottleneck. A flow that leaves was free in all filling
//      rounds of shares below its rate and only made other shares smaller, so those rounds stay as
//      they were; a flow that arrives cannot be rated below floor(C(r) / flows on r) of its
//      resources, so rounds below that stay too. A new solution starts there: flows of smaller
//      rates keep them and count as taken capacity, and of the rest only those that hang together
//      with a touched resource through flows not kept are filled again.
//   3. From one solution to the next nearly all flows keep their bottleneck, whatever happens to
//      its share. So flows are held by bottleneck (flow_groups.h), a new share is one number for
//      all flows of a group, and filling looks for a bottleneck's free flows among all that cross
//      it only when it has more of them than its group.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
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
    return capacity(resource) - static_cast<std::int64_t>(offers_[resource].rest);
  }
  // What a flow that finishes now has done beyond its work, since it ends at a whole picosecond.
  Int128 excess(std::int32_t flow, std::int64_t now_ps) const {
    return groups_.excess(flow, now_ps);
  }
  // What keeps the rate of a flow from rising: a resource, none where it is the cap.
  std::optional<ResourceId> limit(std::int32_t flow) const;
  std::span<const ResourceId> path(std::int32_t flow) const;

 private:
  struct Resource {
    std::int64_t capacity = 0;
    std::int32_t epoch = 0;      // of the last solution that filled it
    std::int32_t group = -1;     // of the flows that it limits; -1 before it ever did
    std::int32_t outsiders = 0;  // flows that are in no group
    std::vector<std::int32_t> flows = {};
  };
  // What a resource has to give: capacity that no flow has, and, while filling, flows without a
  // rate. Small, because filling does little else than change them. Without a sign, since
  // `nowhere_` has no capacity and nobody asks for its rest.
  struct Offered {
    std::uint64_t rest = 0;
    std::int64_t free = 0;
    std::int64_t share() const {
      return static_cast<std::int64_t>(rest / static_cast<std::uint64_t>(free));
    }
  };
  // An offer of the heap: a share, and behind it who offers it; one number, which is compared
  // without branches.
  __extension__ typedef unsigned __int128 Offer;
  static Offer offer(std::int64_t share, ResourceId id) {
    return static_cast<Offer>(share) << 32 | to_index(id);
  }
  static std::int64_t share_of(Offer offer) { return static_cast<std::int64_t>(offer >> 32); }
  static ResourceId resource_of(Offer offer) {
    return static_cast<ResourceId>(static_cast<std::uint32_t>(offer));
  }

  // Calls visit(resource) for every resource on the flow's path, and for `nowhere_`.
  template <class Visit>
  void for_each_hop(std::int32_t flow, Visit&& visit) const {
    for (std::size_t hop = to_index(flow) * stride_, end = hop + stride_; hop < end; ++hop)
      visit(paths_[hop]);
  }
  // The same for all resources but one, which all these flows cross.
  template <class Visit>
  void for_each_other_hop(std::span<const std::int32_t> flows, ResourceId one,
                          Visit&& visit) const {
    if (stride_ == 2) {  // most routes; without a question per flow
      for (std::int32_t flow : flows) {
        const ResourceId* hops = &paths_[2 * to_index(flow)];
        visit(ResourceId{static_cast<std::int32_t>(hops[0]) ^ static_cast<std::int32_t>(hops[1]) ^
                         static_cast<std::int32_t>(one)});
      }
      return;
    }
    for (std::int32_t flow : flows)
      for_each_hop(flow, [&](ResourceId hop) {
        if (hop != one) visit(hop);
      });
  }

  // The flows of a group, or without a rate, are free.
  bool is_open(std::int32_t group) const { return open_[group + kStates] == epoch_; }
  void next_epoch();
  bool take_alone(std::int32_t flow, std::int64_t now_ps);
  void take_back(ResourceId id, std::int64_t rate);
  bool may_enter(std::int32_t group) const;
  void enter_group(std::int32_t group);
  void enter_outsiders(ResourceId resource, std::int64_t now_ps);
  bool enter_crossing_groups();
  void collect(ResourceId root, std::int64_t now_ps);
  bool settle_top();
  bool give_next_cap(std::int64_t share, std::int64_t now_ps);
  void sink(Offer offer);
  void give(ResourceId id, std::int64_t share);
  void give_all(ResourceId bottleneck, std::int64_t share, std::int64_t now_ps);
  void fill(std::int64_t now_ps);

  std::size_t stride_;
  ResourceId nowhere_;
  IndexVector<ResourceId, Resource> resources_;
  IndexVector<ResourceId, Offered> offers_;
  FlowGroups groups_;
  IndexVector<std::int32_t, ResourceId> limits_;  // by group: the resource whose share it has
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
  // One connected part of a solution in the making.
  std::vector<ResourceId> part_;
  std::vector<std::int32_t> part_capped_;
  std::size_t next_capped_ = 0;
  std::vector<Offer> heap_;
  std::vector<std::int32_t> chosen_;
};

}  // namespace reshard::sim
