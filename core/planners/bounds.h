// SPDX-License-Identifier: BSD-3-Clause
// The least time physics allows for a request on a topology: cut, volume and latency bounds.
//
// Only the ranks of the job take part (no other device has a process). For a set X of them, In(X) is the bytes that must enter X: per element (or per kept addend of it) w bytes if a rank of X
// needs it and some addend that it folds is held only outside X. cap_in(X) is the capacity of the resources that routes from the job's other ranks into X cross: the smaller of the sums over their first and
// over their last resources. Then
//
//   cut      max over X of In(X) / cap_in(X); X = each rank, each group of the topology, their complements within the job
//   volume   total receipts / sum of cap_in, over ranks and over the groups of one kind as super-ranks. Receipts of an element with k addends and m needing ranks:
//            m minus the owners among them if k = 1; (k-1)+(m-1) if a needing rank holds an addend; k+m-1 otherwise
//   latency  the greatest, over ranks that must receive, of the least route latency into the rank
//
// All in integers; times are rounded up. Everything is worked out on the common refinement of source and destination pieces, never per element.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "core/topology/topology.h"

namespace reshard {

enum class LimitedBy : std::uint8_t { None, Cut, Volume, Latency };
std::string_view text(LimitedBy limit);  // "none", "cut", "volume", "latency"

struct Bound {
  std::int64_t cut_ps = 0, volume_ps = 0, latency_ps = 0;
  std::int64_t time_ps() const;
  LimitedBy limited_by() const;  // of the greatest; ties: cut, volume, latency; None at 0
};

// The sets X of one job on one topology, with their capacities; numbering is stable, so that In(X) of several requests can be added.
class CutSets {
 public:
  // `ranks` ascending, all below topology.devices().
  CutSets(const Topology& topology, std::vector<Rank> ranks);

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t set) const { return names_[set]; }  // "rank 3", "all but node0"
  // 0 where no route leads in (then nothing can have to enter).
  std::int64_t capacity_in(std::size_t set) const { return capacity_in_[set]; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  const Topology& topology() const { return *topology_; }

 private:
  friend class InCounter;
  const Topology* topology_;
  std::vector<Rank> ranks_;
  std::vector<std::string> names_;
  std::vector<std::int64_t> capacity_in_;
};

struct RequestDemand {
  std::vector<std::int64_t> in_bytes;  // per set of CutSets
  std::int64_t receipts_bytes = 0;     // total over ranks, by the rule above
};

// Demand of one request whose ranks are among the sets' ranks.
RequestDemand demand_of(const Request& request, const CutSets& sets);

// Bounds of one request with its own ranks as the job.
Bound bound_of(const Request& request, const Topology& topology);

// Cut bound of a summed demand.
std::int64_t cut_bound_ps(const std::vector<std::int64_t>& in_bytes, const CutSets& sets);

// redistribution.md 2.2 (2): bytes received over all ranks by any plan, at least.
std::int64_t least_volume_bytes(const Request& request);

}  // namespace reshard
