// SPDX-License-Identifier: BSD-3-Clause
// The joint bound: what several sets of ranks must receive over resources that they share.
//
// A cut asks one set of ranks what must enter it. A job can leave every set below its limit and
// still be late, because the same few links lead into several of them: ranks of a node that gather
// can do so over NICs, too, but only by as many as other nodes send with.
//
// Let every resource have a price, a whole number, and a transfer pay the sum of its route's. Take
// an element, the ranks that hold one certain addend of it and those that need it. Find sets of
// ranks, each with a needer and without a holder, such that no route enters more of them than it
// pays. What derives from the addend must enter every set, so all transfers of the element together
// pay at least the number of sets, wherever it is relayed, copied or folded. In a time T, transfers
// can pay at most (T - L) x sum of price x capacity, where L is the least latency of a route that
// pays. Hence
//
//   T >= L + sum of bytes x sets / sum of price x capacity
//
// The sets of an element are found greedily: of all needers that the holders do not reach over
// routes with nothing left to pay, the one that the fewest ranks reach over such routes. These
// ranks are a set, and every route into it has one less left.
//
// The prices are found by a search; they decide how good the bound is, never whether it holds. Sets
// of ranks are chosen: a rank, a node without it, a node, all but the holders of something, the
// ranks of a node that lack most or hold most of what the others lack, and complements. Prices are
// such that routes pay for the chosen sets that they enter, at one or another of their hops. Sets
// are added and dropped as long as that makes the bound greater, then single prices changed by one.
//
// On two nodes the result is within 1 % of the optimum of nearly all jobs (tests/core/bounds). Work
// and size are limited: jobs of more ranks or more different items do without.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/capacity.h"
#include "core/bounds/counted_items.h"
#include "core/topology/topology.h"

namespace reshard {

// Ranks of a job, as bits by index.
using RankMask = std::uint64_t;
inline RankMask bit(std::size_t rank) { return RankMask{1} << rank; }

struct JointItem {
  RankMask holders, needers;  // holders of one addend; needers that are none
  Int128 bytes;
};

// Collects what must move.
class JointCount {
 public:
  static constexpr std::size_t kMostRanks = 64, kMostItems = 4096;

  // For lists of members of a job of at most kMostRanks ranks.
  static RankMask holders_of(std::span<const Member> members);
  static RankMask needers_of(std::span<const Member> members);

  void add(RankMask holders, RankMask needers, Int128 bytes);
  // Rounded up and capped at the maximum of int64; 0 if nothing moves, if there are too many items,
  // or if one transfer can reach several ranks over the network. `ranks`: the job's, ascending.
  std::int64_t bound_ps(const Topology& topology, const std::vector<Rank>& ranks,
                        Reducing switches) const;

 private:
  std::map<std::pair<RankMask, RankMask>, Int128> items_;
};

}  // namespace reshard
