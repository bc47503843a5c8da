// SPDX-License-Identifier: BSD-3-Clause
// The least time physics allows for a request on a topology: five bounds, each of them true of
// every plan, whatever it relays, copies or folds where.
//
// All rest on one fact. A transfer waits for its route's latency, then its bytes hold every
// resource of the route. So of the routes that a bound looks at let none be faster than L; choose
// one hop of each, or more; let those resources have prices and capacities. What crosses them in a
// time T costs at most the sum of price x capacity, times (T - L). If every plan must spend more,
// it takes longer:
//
//   T >= L + cost / sum of price x capacity
//
// Only the ranks of the job take part (no other device has a process). For a set X of them, In(X)
// is the bytes that must enter X: per element (or per kept addend of it) w bytes if a rank of X
// needs it and some addend that it folds is held only outside X. cap_in(X) is the capacity of the
// distinct resources that routes from the job's other ranks into X cross: the least of the sums
// over their first hops, over their last hops, and over each rule's narrowest hops. Then
//
//   cut      max over X of latency(X) + In(X) / cap_in(X), the least latency of a route into X; X =
//            each rank, each group of the topology, their complements within the job. Price 1 on
//            what enters X. And what a rank's node lacks comes straight or over two routes: entry.h
//   volume   least latency + total receipts / sum of cap_in, over ranks and over the groups of one
//            kind as super-ranks; a resource that several of them share counts once in the sum.
//            Price 1 on every receipt. Receipts of an element with k addends and m needing ranks:
//            m minus the owners among them if k = 1; (k-1)+(m-1) if a needing rank holds an addend;
//            k+m-1 otherwise. Where switches on the way reduce and multicast (the topology's flags,
//            unless only links are used; ranks and groups of ranks: NVLink's or the network's,
//            nodes: the network's), one receipt is enough for each rank that needs it and does not
//            hold all addends
//   price    receipts inside a set and between sets of a level at two prices: price.h
//   holder   what only some ranks of a node hold must leave them, or come from elsewhere: holder.h
//   latency  the greatest, over ranks that must receive, of the least route latency into the rank;
//            and over elements, of the least latency from an owner to a rank that lacks it:
//            latency.h
//
// A super-rank holds an addend if one of its ranks does, so addends may share holders there; k is
// then the size of a greedy packing of addends with pairwise disjoint holders, which keeps the
// bound true. All in integers; times are rounded up. Everything is worked out on the common
// refinement of source and destination pieces, never per element.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"
#include "core/bounds/price.h"
#include "core/layout/request.h"
#include "core/topology/topology.h"

namespace reshard {

enum class LimitedBy : std::uint8_t { None, Cut, Volume, Price, Holder, Latency };
std::string_view text(LimitedBy limit);  // "none", "cut", "volume", "price", "holder", "latency"

// Times beyond int64 are cut to its greatest value. 0 where a bound has nothing to say.
struct Bound {
  std::int64_t cut_ps = 0, volume_ps = 0, price_ps = 0, holder_ps = 0, latency_ps = 0;
  std::int64_t time_ps() const;
  LimitedBy limited_by() const;  // of the greatest; of equal ones the first above; None at 0
};

// Disjoint sets of the job's ranks of one kind: all single ranks, all nodes, all groups of one
// level of the node template. Together with their complements they are the sets X.
struct CutLevel {
  std::vector<std::int32_t> member_of;  // per rank of the job (by index): its set here, -1 for none
  std::vector<std::string> names;       // per set; "rank 3", "node0", "node1.socket0"
  std::vector<std::int32_t> node;       // per set: the node that all its ranks are on
  bool of_nodes = false;                // the sets are the ranks of whole nodes
  bool covers_job =
      true;  // no rank without a set: then the sets are super-ranks for the volume bound
  Int128 capacity =
      0;  // into all sets together, each resource once, where covers_job; bytes per second
  LevelPassages passages;  // where covers_job
  std::size_t first_set =
      0;  // number of its first set X; set i is X = first_set + 2 i, its complement the next
};

// The sets X of one job on one topology, with their capacities; numbering is stable, so that In(X)
// of several requests can be added.
class CutSets {
 public:
  // `ranks` ascending. Throws InputError where a rank has no device. Keeps a reference to the
  // topology.
  CutSets(const Topology& topology, std::vector<Rank> ranks, Switches use = Switches::Reduce);

  std::size_t size() const { return passages_.size(); }
  std::string name(std::size_t set) const;  // "rank 3", "all but node0"
  // Bytes per second; above 0.
  Int128 capacity_in(std::size_t set) const { return passages_[set].bytes_per_s; }
  const Passage& passage_into(std::size_t set) const { return passages_[set]; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  const Topology& topology() const { return *topology_; }
  Reducing reducing() const { return {topology_->machine(), use_}; }
  // Single ranks first. Empty for a job of one rank.
  const std::vector<CutLevel>& levels() const { return levels_; }

 private:
  const Topology* topology_;
  Switches use_;
  std::vector<Rank> ranks_;
  std::vector<CutLevel> levels_;
  std::vector<Passage> passages_;
};

struct RequestDemand {
  std::vector<Int128> in_bytes;        // per set of CutSets
  std::vector<Int128> receipts_bytes;  // per level of CutSets: least total received over its sets,
                                       // by the rule above
  std::vector<PriceDemand> prices;     // per level of CutSets; none: no price bound
  std::int64_t holder_ps = 0;          // the holder bound
  std::int64_t entry_ps = 0;           // the entry bound, part of the cut's
  std::int64_t owner_latency_ps = 0;   // the latency from owners, where it is known
};

// Demand of one request whose ranks are among the sets' ranks. Throws InputError where it would
// need more than 2^33 steps of work.
RequestDemand demand_of(const Request& request, const CutSets& sets);

// Adds to `in_bytes` (per set of CutSets) what a plain transfer of `bytes` from one rank of the job
// to another brings into the sets.
void add_transfer(std::vector<Int128>& in_bytes, const CutSets& sets, Rank source, Rank destination,
                  Int128 bytes);

// Bounds of one request with its own ranks as the job.
Bound bound_of(const Request& request, const Topology& topology, Switches use = Switches::Reduce);
// The same from parts already at hand.
Bound bound_of(const RequestDemand& demand, const CutSets& sets);
// Of several requests that one job of all their ranks does together, in any order: a byte is of one
// of them, so what they bring into sets, receive and pay adds up; of the rest the greatest holds.
Bound bound_of(std::span<const Request> requests, const Topology& topology,
               Switches use = Switches::Reduce);

// Cut bound of a summed demand (RequestDemand::in_bytes added set by set) of what begins at any
// time from 0.
std::int64_t cut_bound_ps(const std::vector<Int128>& in_bytes, const CutSets& sets);

// Bytes received over all ranks by any plan, at least. Cut to int64
// where it is greater.
std::int64_t least_volume_bytes(const Request& request);

}  // namespace reshard
