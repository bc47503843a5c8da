// SPDX-License-Identifier: BSD-3-Clause
// What the two halves of the p2p planner share: plain moves (p2p.cpp) and folded Partial sources
// (p2p_fold.cpp).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/moves/crossing.h"
#include "core/moves/messages.h"
#include "core/planners/planner.h"

namespace reshard {

// Chooses which replica sends. Ranks that hold the same piece of every dim and the same addend are
// replicas of each other and of no other rank, so every such set has its own heap of (elements sent
// so far, position): a pick costs the logarithm of the number of replicas. Replicas on several
// nodes are picked for receivers on their own node first, each for its share of what is expected.
class Senders {
 public:
  // `topology` can be null: then all are equally near.
  Senders(const Crossing& crossing, const Topology* topology);

  // Picks the holder, among those at source positions `base` + a replica offset, that has sent
  // least (ties: the lower position), and counts `elements` as sent by it.
  Slot pick(std::int32_t base, std::int64_t elements);

  // Whether some replicas are nearer than others.
  bool differ() const { return !node_of_.empty(); }
  // Announces elements that pick() or pick_near() will be asked for.
  void expect(std::int32_t base, std::int64_t elements) {
    sets_[to_index(base)].expected += elements;
  }
  // The same among the holders on the receiver's node; nothing if they have sent their share.
  std::optional<Slot> pick_near(std::int32_t base, std::int64_t elements, Rank receiver);

 private:
  using Heap = std::vector<std::pair<std::int64_t, std::int32_t>>;  // least first
  struct Set {
    Heap all;  // filled at the first pick
    std::vector<std::pair<std::int32_t, Heap>> by_node;
    std::int64_t expected = 0;
  };
  std::int32_t take(Heap& heap, std::int64_t elements);
  void refresh(Heap& heap) const;

  const Crossing& crossing_;
  const Topology* topology_;
  std::vector<Set> sets_;              // by base
  std::vector<std::int64_t> sent_;     // by position; heaps are brought up to date when used
  std::vector<std::int32_t> node_of_;  // by position; empty: one node, or not known
};

// Fills crossing.plan if fold_count > 1.
void plan_folds(Crossing& crossing, const PlannerInput& input);

}  // namespace reshard
