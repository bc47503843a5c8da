// SPDX-License-Identifier: BSD-3-Clause
// What the two halves of the p2p planner share: plain moves (p2p.cpp) and folded Partial sources (p2p_fold.cpp).
#pragma once

#include <optional>
#include <vector>

#include "core/planners/messages.h"
#include "core/planners/overlap.h"
#include "core/planners/planner.h"

namespace reshard {

// The request with everything that p2p looks up again and again, by slot where ranks are meant.
class Crossing {
 public:
  explicit Crossing(const Request& request);

  const Request& request;
  Plan plan;
  std::vector<DimOverlap> overlaps;  // per plan dim
  CellPositions source_cells, destination_cells;
  std::vector<Slot> source_slot, destination_slot;  // by mesh position

  int dims() const { return plan.dims(); }
  // Where a rank stands in the source mesh: the sum of its piece bases and its addend; nothing when it is not in the mesh.
  struct Standing {
    std::int32_t base;
    std::int64_t addend;
  };
  const std::optional<Standing>& standing(Slot slot) const { return standings_[static_cast<std::size_t>(slot)]; }

 private:
  std::vector<std::optional<Standing>> standings_;
};

// Bytes (in elements) charged to each slot so far; picks the least charged of several, ties to the lower rank.
class Loads {
 public:
  explicit Loads(std::size_t slots) : loads_(slots, 0) {}
  void charge(Slot slot, std::int64_t elements) { loads_[static_cast<std::size_t>(slot)] += elements; }
  bool less(Slot a, Slot b) const { return std::pair(loads_[static_cast<std::size_t>(a)], a) < std::pair(loads_[static_cast<std::size_t>(b)], b); }

 private:
  std::vector<std::int64_t> loads_;
};

// The holder of base + an offset that has sent least.
Slot least_loaded(const Crossing& crossing, std::int32_t base, const Loads& loads);

// Fills crossing.plan where fold_count > 1.
void plan_folds(Crossing& crossing, Explanation* explanation);

}  // namespace reshard
