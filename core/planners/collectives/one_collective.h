// SPDX-License-Identifier: BSD-3-Clause
// Decides whether one collective, with only local steps around it, performs a request, and with
// which transitions.
//
// Axes of size 1 do not count. The axes that *must* communicate are those that are Partial or
// sharded in the source and something else in the destination. They must be adjacent and need the
// same collective. Every other axis that changes goes R -> shard-like or R -> P, which is local:
// before the collective if possible (less to move), else after it. Index sets decide whether an
// arrangement is possible, not names, so a strided shard that happens to be a plain shard in
// another order is recognized as one:
//
//   all_gather      the members together hold exactly what each of them gets
//   reduce_scatter  all members hold addends of what a member gets
//   all_reduce      the same indices before and after
//   all_to_all      what a member gets is among what the members hold; and no dim is both gathered
//                   and cut (its blocks would be mostly padding)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/planners/collectives/emit.h"

namespace reshard {

struct OneCollective {
  // Empty if it takes more than one collective; then `why` gives the reason.
  std::optional<std::vector<Transition>> transitions;
  std::string why;
};

// The request must have one mesh. Reasons are written if `explain` is set.
OneCollective one_collective(const Request& request, bool explain);

}  // namespace reshard
