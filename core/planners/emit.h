// SPDX-License-Identifier: BSD-3-Clause
// From "the tensor lies like A" to "like B" on one mesh by a list of transitions, each at most one
// collective: the steps that do it, worked out from index sets alone (blocks.h), so that uneven,
// nested, strided and empty shards need no cases of their own. Shared by the planners that use
// collectives.
//
// A *transition* changes the placements of one or several axes; its group is the set of ranks that
// differ only along those axes, in row-major order. Over every axis of size above 1 it has exactly
// one of these shapes:
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
// has a buffer of its own; the last one that moves anything writes into the destination. Steps
// depend on the steps that wrote what they read, and on nothing else.
#pragma once

#include <string>
#include <vector>

#include "core/planners/planner.h"

namespace reshard {

struct Transition {
  std::vector<int> axes;  // ascending; all others have the same placement in `next` as before
  Layout next;
  std::string why;  // recorded against the step that does it
};

// The request must have one mesh, and the last transition must end in its destination layout. A
// transition must be possible by its collective: what a member needs must be held within its group.
Plan emit_plan(const Request& request, std::string planner,
               const std::vector<Transition>& transitions, Explanation* explanation);

}  // namespace reshard
