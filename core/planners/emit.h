// SPDX-License-Identifier: BSD-3-Clause
// From "the tensor lies like A" to "like B" on one mesh by at most one collective: the steps that do it, worked out from index sets alone, so that uneven, nested, strided
// and empty shards need no cases of their own. Shared by the planners that use collectives.
//
// A *transition* changes the placements of one or several axes. Its group is the set of ranks that differ only along those axes, in row-major order. Blocks are padded to equal
// counts by copy and fill steps around the collective; where blocks are already equal and contiguous in the buffers, the collective works on them in place of copies.
#pragma once

#include <vector>

#include "core/planners/planner.h"

namespace reshard {

class PlanBuilder {
 public:
  // Starts with the source layout in the source buffer. Request must have one mesh.
  PlanBuilder(const Request& request, std::string planner, Explanation* explanation);

  // What lies where now.
  const Layout& layout() const { return layout_; }

  // Change the placements of `axes` (ascending) to those in `next`; all other axes must be equal in both. Exactly one of these shapes, over every axis of `axes`:
  //   shard-like -> R                 all_gather        (the axes must be the innermost of their dims' stacks)
  //   R -> shard-like, R -> P         local copies / division
  //   P -> R                          all_reduce
  //   P -> shard-like                 reduce_scatter    (innermost in `next`)
  //   shard-like -> shard-like        all_to_all        (innermost in both; no dim may lose and gain)
  // Axes of size 1 are relabelled. `why` is recorded against the steps.
  void transition(const std::vector<int>& axes, const Layout& next, std::string why);

  // Brings the result into the destination buffer (a copy only where no step has written it) and returns the plan.
  Plan finish();

 private:
  // Defined by emit.cpp.
  Plan plan_;
  Layout layout_;
  BufferId current_;
  Explanation* explanation_;
};

}  // namespace reshard
