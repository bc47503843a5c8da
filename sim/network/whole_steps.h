// SPDX-License-Identifier: BSD-3-Clause
// How long a step takes when all its parts begin together and nothing else moves: found for many
// steps without running their transfers one by one, and then exactly what running them would say.
//
// A round of the step is a set of transfers. n(r) of them cross resource r, so that
//
//     least(r) = floor( C(r) / n(r) )
//
// is a rate that no transfer on r can fall below on account of r: transfers only end, none joins.
// So every transfer f keeps at least
//
//     m(f) = min( cap of f, least(r) over the resources of f )
//
// and ends no later than latency + ceil(bytes / m). Some transfers keep exactly that rate. A cap at
// or below the least shares of its route is always first. And a resource r is *limiting* where its
// (least(r), id) comes before that of every other resource its transfers cross and before their
// caps, while these are alike in bytes and latency: filling (fair_share.h) comes to r before
// anything else that touches its transfers, gives all of them least(r), and since they end together
// this stays so to the end.
//
// The time of a part, or the time that a resource is busy, is known when the latest of its upper
// bounds is the end of a transfer whose rate is exact. That is so for all of them where ranks are
// alike, however the last bytes per second are rounded; elsewhere the step is run. Several rounds
// are taken one after the other while all parts end each of them together; rounds that are alike
// (a ring's) are taken once. Rings whose members do not end their rounds together are taken where
// each transfer has its links for itself (uneven_rings.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/topology/topology.h"
#include "core/traffic/transfers.h"
#include "sim/network/flows.h"

namespace reshard::sim {

class WholeSteps {
 public:
  explicit WholeSteps(const Topology& topology);

  // Whether it knows; then what each part takes, in durations_ps(). `ranks` by part.
  bool takes(const Transfers& transfers, std::span<const Rank> ranks);
  const std::vector<std::int64_t>& durations_ps() const { return durations_ps_; }
  // Of the step that it just took.
  void add_uses(Flows& flows) const;

 private:
  // What is known of an end: no later than `latest`, and a transfer ends at `exact`.
  struct End {
    std::int64_t latest = -1, exact = -1;
    void add(std::int64_t end, bool is_exact);
  };
  // A resource that the step crosses; what follows `use` is of the round.
  struct Link {
    ResourceId resource;
    ResourceUse use = {};  // of the rounds before
    bool limiting = true;
    std::int64_t flows = 0;                       // of bytes
    std::int64_t latency_ps = 0, each_bytes = 0;  // of the first
    std::int64_t share = 0;                       // what each keeps at least
    Int128 bytes = 0;
    End end = {};
  };
  using LinkIndex = std::int32_t;
  static constexpr LinkIndex kNone = -1;
  struct Sent {
    std::int32_t source, destination;
    std::int64_t bytes, rate;  // the cap, then what it keeps at least
    LinkIndex limit = kNone;   // on account of which; none: the cap
  };

  void clear(std::size_t parts);
  bool run(const Transfers& transfers, std::span<const Rank> ranks);
  bool run_round(const Transfers& transfers, std::int32_t round, std::span<const Rank> ranks);
  void clear_round(std::size_t parts);
  bool collect(const Transfers& transfers, std::int32_t round, std::span<const Rank> ranks);
  LinkIndex link_of(ResourceId resource);
  bool cross(LinkIndex at, std::int64_t bytes, std::int64_t latency_ps);
  bool share();
  void find_limits();
  bool find_ends();
  bool all_known() const;
  bool add_round(std::int64_t times);
  // uneven_rings.cpp
  struct RingEdge;
  bool run_rings(const Transfers& transfers, std::span<const Rank> ranks);
  bool add_edges(const Transfers& transfers, std::span<const Rank> ranks, std::int32_t part,
                 std::vector<RingEdge>& edges);
  bool add_edge_use(const Transfers& transfers, std::span<const Rank> ranks, const RingEdge& edge);
  bool run_group(const Transfers& transfers, std::int32_t group,
                 const std::vector<RingEdge>& edges);
  std::span<const LinkIndex> path(std::size_t sent) const;

  const Topology& topology_;
  std::size_t stride_;  // resources of the longest route
  // Of a round.
  IndexVector<std::size_t, Sent> sent_;  // those with bytes
  std::vector<LinkIndex> paths_;         // `stride_` per transfer, filled up with kNone
  std::vector<LinkIndex> crossed_;
  IndexVector<std::int32_t, End> ends_;  // by part
  IndexVector<std::size_t, RouteUse> round_routes_;
  // Of the step.
  std::vector<std::int64_t> durations_ps_;
  IndexVector<ResourceId, LinkIndex> link_of_;
  IndexVector<LinkIndex, Link> links_;
  IndexVector<std::size_t, RouteUse> routes_;
};

}  // namespace reshard::sim
