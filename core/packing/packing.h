// SPDX-License-Identifier: BSD-3-Clause
// A packing: trees along which all commodities flow, such that no resource is busy much longer than
// it must be.
//
// Every commodity is cut into granules, and every granule gets its own tree: from the ranks that
// hold it over the cheapest path to one rank that needs it, from all of those to the next, until
// all are reached; ranks in between forward what they receive. If addends are folded, the same
// search runs backwards: from a root to one holder of every addend, which fold on the path to the
// root, and then from the root outwards to the needers; or the same with a root in every node that
// needs it, whichever is cheaper. Each hop raises the prices of its resources at once. When all
// granules have trees, each is removed and routed again, for a few rounds; the best round is the
// packing. Granules with equal trees are merged.
//
// Only one commodity of every orbit of the symmetry is packed; its trees also represent their
// images.
#pragma once

#include <cstdint>
#include <vector>

#include "core/demand/commodities.h"
#include "core/demand/symmetry.h"
#include "core/packing/rank_routes.h"

namespace reshard {

struct TreeHop {
  Slot from, to;
  friend auto operator<=>(const TreeHop&, const TreeHop&) = default;
};

// One root and the hops towards it and away from it.
struct Branch {
  // The rank that completes the fold; -1 if nothing is folded: then `out` starts at holders.
  Slot root = -1;
  std::vector<Slot> contributors;  // ranks that fold in their own addend, ascending
  std::vector<TreeHop> in;         // towards the root: hops into a rank come before its own
  std::vector<TreeHop> out;        // away from it: the hop into a rank comes before those out of it
  friend auto operator<=>(const Branch&, const Branch&) = default;
};

struct PackedTree {
  std::int32_t commodity;
  std::int32_t granules;  // number of the commodity's granules
  std::vector<Branch> branches;
  friend bool operator==(const PackedTree&, const PackedTree&) = default;
};

struct PackingOptions {
  std::int64_t target_ps = 1;  // the target time
  // The price of a hop over the longest latency, in thousandths of the highest price of a resource
  // class.
  std::int64_t latency_permille = 200;
  // If links are busy for longer than the target time, a hop still costs no more than that share of
  // the price that they have at the target.
  bool latency_of_full = false;
  std::int32_t granules = 512;  // over all packed commodities, at least one each
  // Granules of a commodity that share a tree, at most; the last ones get a tree each, which evens
  // out the loads.
  std::int32_t together = 1;
  int rounds = 3;
  // In the end trees that carry little are given up (fewer_trees.h), if that makes no resource
  // class busy for longer than so many thousandths of the busiest; 0: none are. If all were as busy
  // as the busiest, stages that overlap would wait for each other.
  std::int64_t fewer_trees_permille = 0;
  // Further rounds for shallower trees: each doubles the price of latency. They end when some
  // resource would be busy more than a hundredth longer.
  int shallower_rounds = 0;
};

struct Packing {
  std::vector<PackedTree> trees;         // by commodity
  std::vector<std::int32_t> granules;    // by commodity; 0 if another represents its orbit
  std::vector<std::int64_t> stabilizer;  // by commodity: symmetries that map it to itself
  std::int32_t busiest = -1;             // the resource class that is busy longest
  std::int64_t time_ps = 0;              // how long it is busy
};

Packing pack(const Commodities& commodities, const RankRoutes& routes, const Symmetry& symmetry,
             const PackingOptions& options);

}  // namespace reshard
