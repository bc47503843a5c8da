// SPDX-License-Identifier: BSD-3-Clause
// The least time that physics allows for a request on a topology: five bounds, each valid for every
// plan, wherever it relays, copies or folds.
//
// All five rest on one argument. A transfer waits for its route's latency, then its bytes occupy
// every resource of the route. Take a set of routes, none with a latency below L; choose one or
// more hops of each, and give the resources at these hops prices. What crosses them in a time T
// costs at most (T - L) x sum of price x capacity. So if every plan must spend at least `cost`:
//
//   T >= L + cost / sum of price x capacity
//
// Only the ranks of the job take part (no other device runs a process). For a set X of them, In(X)
// is the number of bytes that must enter X: w bytes per element (or per kept addend of it) if a
// rank of X needs it and some addend of its fold is held only outside X; w is the size of an
// element. cap_in(X) is the capacity of the distinct resources that routes into X from the job's
// other ranks cross: the least of the sums over their first hops, over their last hops, and over
// each rule's narrowest hops. Then
//
//   cut      max over X of latency(X) + In(X) / cap_in(X), where latency(X) is the least latency
//            of a route into X; X = each rank, each group of the topology, and their complements
//            within the job. Price 1 on everything that enters X. Includes the entry bound, for
//            what a rank's node lacks and the rank gets directly or over two routes: entry.h
//   volume   least latency + total receipts / sum of cap_in, over ranks and over the groups of one
//            kind as super-ranks; a resource that several of them share counts once in the sum.
//            Price 1 on every receipt. Receipts of an element with k addends and m needing ranks:
//            m minus the owners among them if k = 1; (k-1)+(m-1) if a needing rank holds an addend;
//            k+m-1 otherwise. If switches on the route reduce and multicast (the topology's flags,
//            unless only links are used; for ranks and groups of ranks: NVLink's or the network's,
//            for nodes: the network's), one receipt is enough for each rank that needs the element
//            and does not hold all addends
//   price    receipts inside a set and between sets of a level at two prices: price.h. Of several
//            requests, also what several sets must receive, at prices of single resources:
//            joint/joint.h
//   holder   what only some ranks of a node hold must leave them or come from elsewhere: holder.h
//   latency  the greatest, over ranks that must receive, of the least route latency into the rank;
//            and, over elements, of the least latency from an owner to a rank that lacks it:
//            latency.h
//
// A super-rank holds an addend if one of its ranks does, so several addends can have a super-rank
// as their only holder; k is then the size of a greedy packing of addends with pairwise disjoint
// holders, which keeps the bound valid. All arithmetic is in integers; times are rounded up.
// Everything is computed on the common refinement of source and destination pieces, never per
// element.
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

enum class LimitedBy : std::uint8_t { None, Cut, Volume, Price, Holder, Latency, Order };
// "none", "cut", "volume", "price", "holder", "latency", "order"
std::string_view text(LimitedBy limit);

// Times beyond int64 are capped at its maximum. 0 if a bound does not apply.
struct Bound {
  std::int64_t cut_ps = 0, volume_ps = 0, price_ps = 0, holder_ps = 0, latency_ps = 0;
  std::int64_t order_ps = 0;  // of a job in stages: order_bound.h
  std::int64_t time_ps() const;
  LimitedBy limited_by() const;  // the greatest; of equal ones the first above; None at 0
};

// Disjoint sets of the job's ranks, all of one kind: all single ranks, all nodes, or all groups of
// one level of the node template. With their complements they are the sets X.
struct CutLevel {
  std::vector<std::int32_t> member_of;  // per rank of the job (by index): its set, -1 for none
  std::vector<std::string> names;       // per set; "rank 3", "node0", "node1.socket0"
  std::vector<std::int32_t> node;       // per set: the node that all its ranks are on
  bool of_nodes = false;                // the sets are the ranks of whole nodes
  // Every rank is in a set: then the sets are super-ranks for the volume bound.
  bool covers_job = true;
  // If covers_job: bytes per second into all sets together, each resource once.
  Int128 capacity = 0;
  LevelPassages passages;  // if covers_job
  // Set i of this level is X = first_set + 2 i; its complement has the next number.
  std::size_t first_set = 0;
};

// The sets X of one job on one topology, and their capacities. The numbering depends on nothing
// else, so In(X) of several requests can be added.
class CutSets {
 public:
  // `ranks` ascending. Throws InputError if a rank has no device. Keeps a reference to the
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
  std::vector<Int128> in_bytes;        // In(X) per set of CutSets
  std::vector<Int128> receipts_bytes;  // per level of CutSets: the least total received by its
                                       // sets, by the volume rule above
  std::vector<PriceDemand> prices;     // per level of CutSets; empty: no price bound
  std::int64_t holder_ps = 0;          // the holder bound
  std::int64_t entry_ps = 0;           // the entry bound, part of the cut's
  std::int64_t joint_ps = 0;           // the joint bound, part of the price's
  std::int64_t owner_latency_ps = 0;   // part of the latency bound: from owners to ranks
};

// Demand of one request; its ranks must be among those of `sets`. Throws InputError if it would
// take more than 2^33 steps of work.
RequestDemand demand_of(const Request& request, const CutSets& sets);
// The demand of several requests that are performed together: everything of those that fold equally
// many addends counts together.
RequestDemand demand_of(std::span<const Request> requests, const CutSets& sets);
// Adds bytes, receipts and prices; of the other bounds the greatest stays.
void add(RequestDemand& sum, const RequestDemand& more);

// Adds to `in_bytes` (per set of CutSets) what a plain transfer of `bytes` from one rank of the job
// to another brings into each set.
void add_transfer(std::vector<Int128>& in_bytes, const CutSets& sets, Rank source, Rank destination,
                  Int128 bytes);

// Bound of one request; the job is its own ranks.
Bound bound_of(const Request& request, const Topology& topology, Switches use = Switches::Reduce);
// The same, from parts that are already computed.
Bound bound_of(const RequestDemand& demand, const CutSets& sets);
// Bound of several requests that one job of all their ranks performs together, in any order. Every
// byte belongs to one of them, so bytes into sets, receipts and prices add up, and so does what the
// holder and entry bounds count in requests that fold equally many addends.
Bound bound_of(std::span<const Request> requests, const Topology& topology,
               Switches use = Switches::Reduce);

// Cut bound of a summed demand (RequestDemand::in_bytes added set by set), for transfers that can
// begin at any time from 0.
std::int64_t cut_bound_ps(const std::vector<Int128>& in_bytes, const CutSets& sets);

}  // namespace reshard
