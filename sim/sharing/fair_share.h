// SPDX-License-Identifier: BSD-3-Clause
// Max-min fair rates of flows that share resources, in integers.
//
// The problem. Flow f crosses the resources P(f) and may have a cap k(f); resource r has the
// capacity C(r); all in bytes/s. Rates x(f) are max-min fair when
//
//     for every r:   sum of x(f) over f crossing r  <=  C(r)
//     for every f:   x(f) <= k(f)
//     no x(f) can rise without lowering an x(g) <= x(f).
//
// The method is progressive filling. A flow without a rate is "free". Each resource that free flows
// cross offers
//
//     share(r) = floor( (C(r) - rates already given on r) / free flows on r )
//
// The *bottleneck* is the resource with the smallest (share, resource id); its free flows get its
// share and are no longer free. A cap acts as a resource of one flow: it precedes every resource of
// an equal share; equal caps need no order, since they give equal rates. The floor is the only
// rounding, and it leaves less than one byte/s per flow of a resource unused.
//
// Four facts make it fast without changing the result:
//   1. Shares never fall while filling: what a bottleneck's flow takes from another resource is at
//      most that resource's own share. So a resource can be filled at once if its (share, id) is
//      the smallest among the resources that its own free flows cross, and below their caps,
//      whatever the rest of the network offers: only those resources could take its flows, and as
//      their shares do not fall, it precedes each of them in the global order, at this share.
//      Filling therefore follows the order of the previous solution, which is nearly right, and
//      where another resource of a flow comes first, fills that one first; no sorted order is kept.
//   2. Shares ascend from bottleneck to bottleneck. A flow that leaves was free in all filling
//      rounds of shares below its rate and only made other shares smaller, so those rounds stay as
//      they were; a flow that arrives cannot be rated below floor(C(r) / flows on r) of its
//      resources, so rounds below that stay too. A new solution starts there: flows of smaller
//      rates keep them and count as used capacity, and of the others only those are filled again
//      that are connected to a touched resource through flows that are not kept.
//   3. From one solution to the next nearly all flows keep their bottleneck, whatever happens to
//      its share. So flows are grouped by bottleneck (flow_groups.h), and the group also stores the
//      other resources that each flow crosses; a new share is one number for all flows of a group,
//      and filling searches all flows that cross a bottleneck for free ones only if there are more
//      of these than in its group.
//   4. Most flows that have their cap as their rate keep it. So they are not free at first, but
//      count as used capacity. If in the end no resource has a smaller share than the cap of such a
//      flow on it, the same sequence of shares also solves the problem in which they are free: when
//      it comes to the cap of one, its resources have not been filled yet, and what is given on
//      them later is no less than the cap for each flow. (Rounding down could put another resource
//      in between if a share exceeds the cap by less than one byte/s per flow, or the unused rest
//      is as small.) If some resource may have a smaller share, its flows of this kind are free
//      after all, and the part is filled again.
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

  // The caller numbers the flows, densely. A flow gets its rate at the next solve(). `path` names
  // at least one resource and none twice; cap >= 1. No resource may be crossed by more flows than
  // its bytes/s. `work` is the work of the flow, in 10^-12 byte.
  void add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap, Int128 work);
  void remove(std::int32_t flow, std::int64_t now_ps);
  // Sets the capacity, at least 1, of a resource that no flow crosses.
  void set_capacity(ResourceId resource, std::int64_t capacity);
  // What a solution changed: the resources with flows that may have new rates, and the flows for
  // which limit() may have changed. Both may occur twice.
  struct Changes {
    std::vector<ResourceId> resources;
    std::vector<std::int32_t> relimited;
  };
  // Brings all rates and finish times up to date.
  void solve(std::int64_t now_ps, Changes* changes = nullptr);

  std::int64_t rate(std::int32_t flow) const { return groups_.rate(flow); }
  std::int64_t next_finish_ps() { return groups_.next_finish_ps(); }
  // Appends the flows that finish at the next finish time, which must be now, in no particular
  // order. The caller must remove them.
  void find_finished(std::int64_t now_ps, std::vector<std::int32_t>& out) {
    groups_.find_finished(now_ps, out);
  }
  // Number of flows that cross the resource now.
  std::int32_t load(ResourceId resource) const {
    return static_cast<std::int32_t>(resources_[resource].flows.size());
  }
  std::int64_t capacity(ResourceId resource) const { return resources_[resource].capacity; }
  // Sum of the rates on the resource: those of the last solution, less the flows removed since.
  std::int64_t used(ResourceId resource) const {
    return capacity(resource) - static_cast<std::int64_t>(rest_[resource]);
  }
  // By how much the work that a flow finishing now has done exceeds its own, since it ends at a
  // whole picosecond.
  Int128 excess(std::int32_t flow, std::int64_t now_ps) const {
    return groups_.excess(flow, now_ps);
  }
  // The resource that limits the rate of a flow; none if its cap does.
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
    std::int32_t epoch = 0;       // of the last solution that filled it
    std::int32_t new_epoch = 0;   // of the last solution with new flows on it
    std::int32_t open_epoch = 0;  // of the last solution that freed its flows that were alone
    std::int32_t group = -1;      // of the flows that it limits; -1 until it limits some
    std::int32_t alone = 0;       // flows that are alone
    std::int64_t alone_cap = 0;   // at least the largest cap of those
    std::vector<std::int32_t> flows = {};
  };
  // The next thing to fill: a resource, or a flow up to its cap.
  struct NextLimit {
    ResourceId resource;
    std::int32_t flow = -1;
  };
  // The flows that have a resource's share as their rate.
  struct Group {
    ResourceId limit;
    std::vector<std::int32_t> flows;
    std::vector<ResourceId> others;  // by flow, the rest of its path: `stride_` - 1 entries, padded
                                     // with `nowhere_`
  };

  // Calls visit(resource) for every resource on the flow's path, and for the padding `nowhere_`.
  template <class Visit>
  void for_each_hop(std::int32_t flow, Visit&& visit) const {
    for (std::size_t hop = to_index(flow) * stride_, end = hop + stride_; hop < end; ++hop)
      visit(paths_[hop]);
  }

  std::int64_t share(ResourceId id) const {
    return static_cast<std::int64_t>(rest_[id] / static_cast<std::uint64_t>(free_[id]));
  }
  // Whether the flows of a group, or those without a rate, are free.
  bool is_open(std::int32_t group) const { return open_[group + kStates] == epoch_; }
  void next_epoch();
  void solve_parts(std::int64_t now_ps);
  void solve_all(std::int64_t now_ps);
  void join(std::int32_t flow, std::int32_t group, std::int64_t now_ps);
  void leave(std::int32_t flow, std::int64_t now_ps);
  void set_alone(std::int32_t flow, std::int64_t rate, std::int64_t now_ps);
  bool take_alone(std::int32_t flow, std::int64_t now_ps);
  void take_back(ResourceId id, std::int64_t rate);
  bool may_enter(std::int32_t group) const;
  void enter_group(std::int32_t group);
  void enter(std::int32_t flow, std::int64_t now_ps);
  void enter_new(ResourceId resource, std::int64_t now_ps);
  void enter_alone(ResourceId resource, std::int64_t now_ps);
  bool caps_alone(ResourceId resource);
  bool keep_small_shares();
  bool enter_crossing_groups();
  void collect(std::int64_t now_ps);
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
  // What a resource still has to give: unused capacity and, while filling, the number of free
  // flows. Filling does little else than update these. `nowhere_` has no capacity and far fewer
  // than 0 free flows, so it never joins a part and never offers less than another.
  IndexVector<ResourceId, std::uint64_t> rest_;
  IndexVector<ResourceId, std::int64_t> free_;
  FlowGroups groups_;
  IndexVector<std::int32_t, Group> members_;       // by group
  IndexVector<std::int32_t, std::int32_t> seats_;  // by flow: its index in its group
  // By group: the solution in which its flows are free; the two states without a group come first.
  static constexpr std::int32_t kStates = 2;
  IndexVector<std::int32_t, std::int32_t> open_ = std::vector<std::int32_t>(kStates, 0);
  IndexVector<std::int32_t, std::int32_t> entered_;  // by flow without a rate: the solution in
                                                     // which it was last free
  IndexVector<std::int32_t, std::int64_t> caps_;     // by flow; kNoCap if it cannot bind
  // `stride_` entries per flow: its path, padded with `nowhere_`, and its index in each resource's
  // list.
  std::vector<ResourceId> paths_;
  std::vector<std::int32_t> positions_;
  // The changes since the last solution: new flows, resources that flows have left, and the rate
  // below which all other flows keep theirs.
  std::vector<std::int32_t> new_;
  std::vector<ResourceId> touched_;
  std::int64_t keep_below_ = kNoCap;
  std::int32_t epoch_ = 0;
  Changes* changes_ = nullptr;            // of the current solution; null if not asked for
  std::int64_t capped_ = 0;               // flows that a cap can bind
  std::int64_t grouped_ = 0, freed_ = 0;  // flows of groups; of those, free in this part
  // The most flows that ever crossed one resource, and the largest share that fits 64 bits when
  // multiplied by that number.
  std::int32_t most_flows_ = 1;
  std::uint64_t most_share_ = std::numeric_limits<std::uint64_t>::max();
  // After filling a part of at least half the network, this many solutions skip the search for
  // connected parts and fill everything: that is never wrong, and slower only for so long.
  static constexpr std::int32_t kWhole = 63;
  std::int32_t whole_ = 0;
  // One connected part of the current solution.
  std::vector<ResourceId> part_;
  std::vector<std::pair<std::int64_t, ResourceId>> order_;
  std::vector<ResourceId> filled_, last_filled_;  // in this order
  std::vector<NextLimit> candidates_;
  Group chosen_;
  std::vector<ResourceId> small_;
};

}  // namespace reshard::sim
