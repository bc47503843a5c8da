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
// Two facts make it fast and change nothing in the result:
//   1. Shares never fall while filling: what a bottleneck's flow takes from another resource is at
//   most that resource's own share. So a heap with outdated keys works: a
//      resource on top whose share has risen meanwhile is put back.
//   2. Shares ascend from bottleneck to bottleneck. A flow that leaves was free in all filling
//   rounds of shares below its rate and only made other shares smaller, so those
//      rounds stay as they were; a flow that arrives cannot be rated below floor(C(r) / flows on r)
//      of its resources, so rounds below that stay too. A new solution starts there: flows of
//      smaller rates keep them and count as taken capacity, and of the rest only those that hang
//      together with a touched resource through flows not kept are filled again.
// The inner loops choose flows without branching, since which of them are kept or free has no
// pattern that a processor could learn.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

class FairShare {
 public:
  static constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

  // Capacities by ResourceId, each >= 1; no flow crosses more than `max_hops` resources.
  FairShare(const std::vector<std::int64_t>& capacities, std::int32_t max_hops);

  // Flows are numbered by the caller, densely. A flow gets its rate at the next solve(). `path`
  // names at least one resource and none twice; cap >= 1. No resource may be crossed by more flows
  // than it has bytes/s.
  void add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap);
  void remove(std::int32_t flow);

  struct Change {
    std::int32_t flow;
    std::int64_t old_rate;  // 0: a flow new in this solution
  };
  // Brings all rates up to date and lists those that changed, each once.
  void solve(std::vector<Change>& changes);

  std::int64_t rate(std::int32_t flow) const { return flows_[flow].rate; }
  // Flows that cross the resource now.
  std::int32_t load(ResourceId resource) const {
    return static_cast<std::int32_t>(resources_[resource].flows.size());
  }
  std::int64_t capacity(ResourceId resource) const { return resources_[resource].capacity; }
  // What keeps the rate of a flow from rising: the lowest of the resources that do, none where it
  // is the cap.
  std::optional<ResourceId> limit(std::int32_t flow) const;
  std::span<const ResourceId> path(std::int32_t flow) const;

 private:
  static constexpr ResourceId kNoResource{-1};

  struct Resource {
    std::int64_t capacity;
    // While filling: capacity not given yet, and flows without a rate.
    std::int64_t rest = 0;
    std::int64_t free = 0;
    std::int32_t epoch = 0;  // of the last solution that filled it
    std::vector<std::int32_t> flows;
  };
  // Small, because a solution reads every flow of its part in no particular order.
  struct Flow {
    std::int64_t rate;  // 0: none yet
    std::int32_t mark;  // 2 * epoch_: free in this solution; 2 * epoch_ + 1: rated in it
  };
  // An offer of the heap.
  struct Offer {
    std::int64_t share;
    std::int32_t resource;
    friend auto operator<=>(const Offer&, const Offer&) = default;
  };

  void next_epoch();
  void collect(std::size_t root);
  void enter(std::int32_t flow);
  bool settle_top();
  bool give_next_cap(std::int64_t share, std::vector<Change>& changes);
  void give(std::int32_t flow, std::int64_t share, std::vector<Change>& changes);
  void give_all(const Resource& bottleneck, std::int64_t share, std::vector<Change>& changes);
  void fill(std::vector<Change>& changes);

  std::size_t stride_;
  IndexVector<ResourceId, Resource> resources_;
  IndexVector<std::int32_t, Flow> flows_;
  IndexVector<std::int32_t, std::int64_t> caps_;  // kNoCap where it cannot bind
  // `stride_` entries per flow: its path, filled up with kNoResource, and where it stands in each
  // resource's list.
  std::vector<ResourceId> paths_;
  std::vector<std::int32_t> positions_;
  // The change since the last solution: resources whose flows are others, and the rate below which
  // all others stay.
  std::vector<std::size_t> touched_;
  std::int64_t keep_below_ = kNoCap;
  std::int32_t epoch_ = 0;
  // One connected part of a solution in the making.
  std::vector<std::size_t> part_resources_;
  std::vector<std::int32_t> part_capped_;
  std::size_t next_capped_ = 0;
  std::vector<Offer> heap_;
  std::vector<std::int32_t> chosen_;
};

}  // namespace reshard::sim
