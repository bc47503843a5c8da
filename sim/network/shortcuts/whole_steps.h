// SPDX-License-Identifier: BSD-3-Clause
// Computes the duration of a step if all its parts begin together while nothing else moves. Many
// steps need not be run transfer by transfer then; the result is exactly the same.
//
// A round of the step is a set of transfers. n(r) of them cross resource r, so that
//
//     least(r) = floor( C(r) / n(r) )
//
// is a rate below which r cannot push any transfer: transfers only end, none is added. So every
// transfer f keeps at least
//
//     m(f) = min( cap of f, least(r) over the resources of f )
//
// and ends no later than latency + ceil(bytes / m). Some transfers keep exactly that rate. A cap at
// or below the least shares of the route always takes effect first. A resource r is *limiting* if
// all its transfers have equal bytes and latency, and if (least(r), id) comes before that of every
// other resource that its transfers cross, and before their caps. Filling (fair_share.h) then
// reaches r before anything else that affects its transfers and gives all of them least(r), and
// since they end together, this remains so to the end.
//
// The duration of a part, or the time for which a resource is busy, is known if the latest of its
// upper bounds is the end of a transfer with an exact rate. That holds for all of them if ranks are
// equivalent, however the last bytes per second are rounded; otherwise the step is run. Several
// rounds are computed one after another as long as all parts end each of them together; equal
// rounds (as in a ring) are computed once. Rings with members that do not end their rounds together
// are computed if no two transfers of a round share a resource (uneven_rings.cpp).
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

  // Whether the durations could be computed; durations_ps() then has that of each part. `ranks` is
  // by part.
  bool takes(const Transfers& transfers, std::span<const Rank> ranks);
  const std::vector<std::int64_t>& durations_ps() const { return durations_ps_; }
  // Adds the resource use of the step that was just computed.
  void add_uses(Flows& flows) const;

 private:
  // What is known about an end: it is not after `latest`, and one transfer ends exactly at `exact`.
  struct End {
    std::int64_t latest = -1, exact = -1;
    void add(std::int64_t end, bool is_exact);
  };
  // A resource that the step crosses; the fields after `use` belong to the current round.
  struct Link {
    ResourceId resource;
    ResourceUse use = {};  // of the previous rounds
    bool limiting = true;
    std::int64_t flows = 0;                       // of more than 0 bytes
    std::int64_t latency_ps = 0, each_bytes = 0;  // of the first flow
    std::int64_t share = 0;                       // the least rate that each flow keeps
    Int128 bytes = 0;
    End end = {};
  };
  using LinkIndex = std::int32_t;
  static constexpr LinkIndex kNone = -1;
  struct Sent {
    std::int32_t source, destination;
    std::int64_t bytes, rate;  // first the cap, then the least rate that it keeps
    LinkIndex limit = kNone;   // the resource that limits the rate; none: the cap
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
  // Defined in uneven_rings.cpp.
  struct RingEdge;
  bool run_rings(const Transfers& transfers, std::span<const Rank> ranks);
  bool add_edges(const Transfers& transfers, std::span<const Rank> ranks, std::int32_t part,
                 std::vector<RingEdge>& edges);
  bool add_edge_use(const Transfers& transfers, std::span<const Rank> ranks, const RingEdge& edge);
  bool run_group(const Transfers& transfers, std::int32_t group,
                 const std::vector<RingEdge>& edges);
  std::span<const LinkIndex> path(std::size_t sent) const;

  const Topology& topology_;
  std::size_t stride_;  // the number of resources of the longest route
  // For the current round.
  IndexVector<std::size_t, Sent> sent_;  // of more than 0 bytes
  std::vector<LinkIndex> paths_;         // `stride_` per transfer, padded with kNone
  std::vector<LinkIndex> crossed_;
  IndexVector<std::int32_t, End> ends_;  // by part
  IndexVector<std::size_t, RouteUse> round_routes_;
  // For the whole step.
  std::vector<std::int64_t> durations_ps_;
  IndexVector<ResourceId, LinkIndex> link_of_;
  IndexVector<LinkIndex, Link> links_;
  IndexVector<std::size_t, RouteUse> routes_;
};

}  // namespace reshard::sim
