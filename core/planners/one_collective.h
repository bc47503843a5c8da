// SPDX-License-Identifier: BSD-3-Clause
// Whether one collective, with only local steps around it, does a request; and if so, the
// transitions.
//
// Axes of size 1 do not count. The axes that *must* communicate are those that are Partial or
// sharded in the source and something else in the destination. They have to be adjacent and to need
// the same collective. Every other axis that changes goes R -> shard-like or R -> P, which is
// local: before the collective where that is possible (less to move), else after it. Whether an
// arrangement is possible is decided by index sets and not by names, so a strided shard that
// happens to be a plain shard in another order is seen for what it is:
//
//   all_gather      what the members hold is exactly what each of them gets
//   reduce_scatter  what a member gets, all of them hold addends of
//   all_reduce      the same indices before and after
//   all_to_all      what a member gets is among what the members hold; and no dim is both gathered
//                   and cut (its blocks would be mostly padding)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/planners/emit.h"

namespace reshard {

struct OneCollective {
  // Empty: it takes more than one collective, and `why` says why.
  std::optional<std::vector<Transition>> transitions;
  std::string why;
};

// The request must have one mesh. Reasons are written where `explain` is set.
OneCollective one_collective(const Request& request, bool explain);

}  // namespace reshard
