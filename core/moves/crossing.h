// SPDX-License-Identifier: BSD-3-Clause
// A request with everything that the planners of messages look up repeatedly, indexed by slot
// instead of by rank, and the plan that they make of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/layout/zero_axes.h"
#include "core/moves/overlap.h"
#include "core/plan/plan.h"

namespace reshard {

class Crossing {
 public:
  // The plan begins without steps; `planner` is its planner's name.
  Crossing(const Request& request, std::string planner);

  const Request& request;
  Plan plan;
  ZeroAxes zero_axes;
  std::vector<DimOverlap> overlaps;  // per plan dim
  CellPositions source_cells, destination_cells;
  std::vector<Slot> source_slot, destination_slot;  // by mesh position

  int dims() const { return plan.dims(); }
  // The parts of every rank's destination that S->P(sum) leaves zero.
  FillStep zeros() const;
  // A rank's place in the source mesh: the sum of its piece bases, and its addend. Nothing if it is
  // not in the mesh.
  struct Standing {
    std::int32_t base;
    std::int64_t addend;
  };
  const std::optional<Standing>& standing(Slot slot) const { return standings_[to_index(slot)]; }

 private:
  std::vector<std::optional<Standing>> standings_;
};

}  // namespace reshard
