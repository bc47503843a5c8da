// SPDX-License-Identifier: BSD-3-Clause
// Turns a list of transitions on one mesh, each at most one collective, into the steps that take a
// tensor from its source layout to its destination layout. Steps are computed from index sets alone
// (blocks.h), so that uneven, nested, strided and empty shards need no special cases. Shared by the
// planners that use collectives.
//
// A *transition* changes the placements of one or several axes; its groups are the ranks that
// differ only along those axes, in row-major order. Along all its axes of size above 1 it makes the
// same one of these changes:
//
//   shard-like -> R           all_gather
//   R -> shard-like           local copies
//   R -> P                    a division for sum, nothing for avg, min and max
//   P -> R                    all_reduce
//   P -> shard-like           reduce_scatter
//   shard-like -> shard-like  all_to_all
//   S(d) -> P(sum)            local copies of what a rank holds, zeros for the rest
//
// avg folds like sum and divides by the axis size. Axes of size 1 are relabelled. Every transition
// has its own buffer; the last one that moves anything writes to the destination. Steps depend on
// the steps that wrote what they read, and on nothing else.
#pragma once

#include <string>
#include <vector>

#include "core/planners/planner.h"

namespace reshard {

struct Transition {
  std::vector<int> axes;  // ascending; all others have the same placement in `next` as before
  Layout next;
  std::string why;  // recorded for the step that does it
};

// The request must have one mesh, and the last transition must end in its destination layout. Every
// transition must be possible with its collective: what a member needs must be held within its
// group.
Plan emit_plan(const Request& request, std::string planner,
               const std::vector<Transition>& transitions, Explanation* explanation);

}  // namespace reshard
