// SPDX-License-Identifier: BSD-3-Clause
// Max-min fair rates of flows that share resources, in integers.
//
// The problem. Flow f crosses the resources P(f) and may have a cap k(f); resource r has the capacity C(r), all in bytes/s. Rates x(f) are max-min fair when
//
//     for every r:   sum of x(f) over f crossing r  <=  C(r)
//     for every f:   x(f) <= k(f)
//     no x(f) can rise without lowering an x(g) <= x(f).
//
// The method is progressive filling. While flows are without a rate ("free"), each resource that free flows cross offers
//
//     share(r) = floor( (C(r) - rates already given on r) / free flows on r )
//
// The *bottleneck* is the smallest (share, resource id); its free flows get its share and are no longer free. A cap is a resource of one flow: it comes before every
// resource of an equal share; caps among themselves need no order, since equal ones give equal rates. The floor is the only rounding, and it leaves less than one byte/s
// per flow of a resource unused.
//
// Two facts make it fast and change nothing in the result:
//   1. Shares never fall while filling: what a bottleneck's flow takes from another resource is at most that resource's own share. So a heap with outdated keys works: a
//      resource on top whose share has risen meanwhile is put back.
//   2. Bottlenecks come in ascending order of (share, id), the *level* of their flows. A flow that leaves was free in all filling rounds below its level and only made
//      other shares smaller, so those rounds stay as they were; a flow that arrives cannot be rated below floor(C(r) / flows on r) of its resources, so rounds below that
//      stay too. A new solution starts there: flows of lower levels keep their rates and count as taken capacity, and of the rest only
//      those that hang together with a touched resource through flows not kept are filled again.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

class FairShare {
 public:
  static constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

  // Capacities by ResourceId, each >= 1; no flow crosses more than `max_hops` resources.
  FairShare(std::vector<std::int64_t> capacities, std::int32_t max_hops);

  // Flows are numbered by the caller, densely. A flow gets its rate at the next solve(). `path` names at least one resource and none twice; cap >= 1.
  // No resource may be crossed by more flows than it has bytes/s.
  void add(std::int32_t flow, std::span<const ResourceId> path, std::int64_t cap);
  void remove(std::int32_t flow);

  struct Change {
    std::int32_t flow;
    std::int64_t old_rate;  // 0: a flow new in this solution
  };
  // Brings all rates up to date and lists those that changed, each once.
  void solve(std::vector<Change>& changes);

  std::int64_t rate(std::int32_t flow) const { return rates_[static_cast<std::size_t>(flow)]; }
  // Flows that cross the resource now.
  std::int32_t load(ResourceId resource) const { return static_cast<std::int32_t>(flows_on_[to_index(resource)].size()); }
  std::int64_t capacity(ResourceId resource) const { return capacities_[to_index(resource)]; }
  std::span<const ResourceId> path(std::int32_t flow) const;

 private:
  // Where a flow was rated: by which bottleneck (-1: its own cap) at which share.
  struct Level {
    std::int64_t share;
    std::int32_t bottleneck;
    friend auto operator<=>(const Level&, const Level&) = default;
  };
  static constexpr Level kTop{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int32_t>::max()};
  // What is left of a resource while filling.
  struct Room {
    std::int64_t rest;
    std::int64_t free;
  };

  bool kept(std::size_t flow) const;
  void collect(std::size_t root);
  void fill(std::vector<Change>& changes);
  bool settle_top();
  void give(std::int32_t flow, Level level, std::vector<Change>& changes);

  std::int32_t stride_;
  // By resource.
  std::vector<std::int64_t> capacities_;
  std::vector<std::vector<std::int32_t>> flows_on_;
  std::vector<Room> rooms_;
  std::vector<std::int64_t> resource_marks_;
  // By flow. Paths and positions in flows_on_ have `stride_` places per flow.
  std::vector<ResourceId> paths_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> hops_;
  std::vector<std::int64_t> caps_, rates_;
  std::vector<std::int32_t> bottlenecks_;
  std::vector<std::int64_t> flow_marks_;  // 2 * epoch_: free in this solution; 2 * epoch_ + 1: rated in it
  // The change since the last solution.
  std::vector<std::size_t> touched_;
  Level keep_below_ = kTop;
  std::int64_t epoch_ = 0;
  // One connected part of a solution in the making.
  std::vector<std::size_t> part_resources_;
  std::vector<std::int32_t> part_capped_;
  std::vector<Level> heap_;
};

}  // namespace reshard::sim
