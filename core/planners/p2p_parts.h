// SPDX-License-Identifier: BSD-3-Clause
// What the two halves of the p2p planner share: plain moves (p2p.cpp) and folded Partial sources
// (p2p_fold.cpp).
#pragma once

#include <vector>

#include "core/moves/crossing.h"
#include "core/moves/messages.h"
#include "core/planners/planner.h"

namespace reshard {

// Which replica sends. Ranks that hold the same piece of every dim and the same addend are replicas
// of each other and of nobody else, so every such set keeps its own heap of (elements sent so far,
// rank): a pick costs the logarithm of the number of replicas.
class Senders {
 public:
  explicit Senders(const Crossing& crossing)
      : crossing_(crossing), sets_(crossing.source_slot.size()) {}
  // The holder at source position `base` + a replica offset that has sent least (ties: the lower
  // rank); charged with `elements` more.
  Slot pick(std::int32_t base, std::int64_t elements);

 private:
  const Crossing& crossing_;
  // By base; least first; filled at the first pick.
  std::vector<std::vector<std::pair<std::int64_t, Slot>>> sets_;
};

// Fills crossing.plan where fold_count > 1.
void plan_folds(Crossing& crossing, Explanation* explanation);

}  // namespace reshard
