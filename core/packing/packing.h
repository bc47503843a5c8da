// SPDX-License-Identifier: BSD-3-Clause
// A packing: trees along which all commodities flow, so that no resource is under way much longer
// than it must be.
//
// Every commodity is cut into granules, and every granule gets a tree of its own: from the ranks
// that hold it over the cheapest way to one rank that needs it, from all of those to the next,
// until all are reached; ranks in between pass on what they receive. Where addends are folded the
// same search runs backwards: from a root to one holder of every addend, who fold on the way to the
// root, and from the root outwards to the needers; or so in every node that needs it, whichever is
// cheaper. Each hop makes its resources dearer at once. When all granules have trees, each is taken
// out and sent anew, a few times over; the best of these rounds is the packing. Granules with one
// tree become one.
//
// Only one commodity of every orbit of the symmetry is packed; its trees stand for their images.
#pragma once

#include <cstdint>
#include <vector>

#include "core/packing/commodity.h"
#include "core/packing/rank_routes.h"
#include "core/packing/symmetry.h"

namespace reshard {

struct TreeHop {
  Slot from, to;
  friend auto operator<=>(const TreeHop&, const TreeHop&) = default;
};

// One root and what hangs on it.
struct Branch {
  // Where the fold is complete; -1 where nothing is folded: then `out` starts at holders.
  Slot root = -1;
  std::vector<Slot> contributors;  // ranks whose own addend is folded, ascending
  std::vector<TreeHop> in;         // towards the root: a rank's own hop comes before those into it
  std::vector<TreeHop> out;        // away from it: a rank's own hop comes before those out of it
  friend auto operator<=>(const Branch&, const Branch&) = default;
};

struct PackedTree {
  std::int32_t commodity;
  std::int32_t granules;  // of the commodity's
  std::vector<Branch> branches;
};

struct PackingOptions {
  std::int64_t target_ps = 1;  // the time aimed at
  // A hop over the longest latency costs as much as this many thousandths of the highest price of a
  // resource class.
  std::int64_t latency_permille = 200;
  std::int32_t granules = 512;  // at most, of all that are packed, but one per commodity
  int rounds = 3;
  // Afterwards as many rounds in which latency costs twice as much each, as long as no resource is
  // under way more than a hundredth longer: trees that are less deep.
  int shallower_rounds = 0;
};

struct Packing {
  std::vector<PackedTree> trees;         // by commodity
  std::vector<std::int32_t> granules;    // by commodity; 0 where its orbit has another
  std::vector<std::int64_t> stabilizer;  // by commodity: how often the symmetry maps it to itself
  std::int32_t busiest = -1;             // the resource class that is under way longest
  std::int64_t time_ps = 0;              // how long it is
};

Packing pack(const Commodities& commodities, const RankRoutes& routes, const Symmetry& symmetry,
             const PackingOptions& options);

}  // namespace reshard
