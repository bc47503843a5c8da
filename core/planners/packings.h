// SPDX-License-Identifier: BSD-3-Clause
// The packings of a job that `packed` tries: trees of different depths.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "core/packing/packing.h"

namespace reshard {

// The kind of trees to look for.
struct Aim {
  // The price of a hop over the longest latency, in thousandths of that of the busiest resource
  // class.
  std::int64_t latency_permille;
  // How long a resource class can be busy before it becomes expensive, in multiples of the bound.
  std::int64_t bounds = 1;
  int shallower_rounds = 0;
  friend bool operator==(const Aim&, const Aim&) = default;
};
class Packings {
 public:
  // `bound_ps` is the target time. `fewer_trees`: for a job, small trees are given up, so that as
  // many moves make more chunks; not under a memory limit, where small slices count. All references
  // must outlive this.
  Packings(const Commodities& commodities, const RankRoutes& routes, const Symmetry& symmetry,
           std::int64_t bound_ps, bool fewer_trees)
      : commodities_(commodities),
        routes_(routes),
        symmetry_(symmetry),
        bound_ps_(bound_ps),
        fewer_trees_(fewer_trees) {}

  // Looks for the trees of an aim only once, `quickly` for a large job. The packing is valid for as
  // long as this is.
  const Packing& of(const Aim& aim, bool quickly);

 private:
  Packing found(const Aim& aim, bool quickly) const;

  const Commodities& commodities_;
  const RankRoutes& routes_;
  const Symmetry& symmetry_;
  std::int64_t bound_ps_;
  bool fewer_trees_;
  std::deque<std::pair<Aim, Packing>> by_aim_;
};

}  // namespace reshard
