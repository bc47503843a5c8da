// SPDX-License-Identifier: BSD-3-Clause
// Chooses which replica sends. Ranks that hold the same piece of every dim and the same addend of a
// tensor are replicas of each other and of no other rank, so every such set has its own heap of
// (bytes sent so far, position): a pick costs the logarithm of the number of replicas. What a rank
// has sent counts over all tensors. Replicas on several nodes are picked for receivers on their own
// node first, each up to its share of the bytes that are expected.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/demand/demand.h"
#include "core/topology/topology.h"

namespace reshard {

class Senders {
 public:
  // `topology` can be null: then all are equally near. The demand must outlive this.
  Senders(const Demand& demand, const Topology* topology);

  struct Set {
    std::size_t kind;  // index in Demand::kinds()
    HolderSet number;
  };
  // Picks the replica that has sent least (ties: the lower position), and counts `bytes` as sent by
  // it.
  Slot pick(Set set, std::int64_t bytes);

  // Whether some replicas are nearer than others.
  bool differ() const { return !node_of_.empty(); }
  // Announces bytes that pick() or pick_near() will be called with; all before the first of these.
  void expect(Set set, std::int64_t bytes) {
    kinds_[set.kind].sets[to_index(set.number)].expected += bytes;
  }
  // Like pick(), among the replicas on the receiver's node; nothing if they have sent their share.
  std::optional<Slot> pick_near(Set set, std::int64_t bytes, Rank receiver);

 private:
  using Heap = std::vector<std::pair<std::int64_t, std::int32_t>>;  // bytes, position; least first
  struct Replicas {
    Heap all;  // filled at the first pick
    std::vector<std::pair<std::int32_t, Heap>> by_node;
    std::int64_t expected = 0;
  };
  struct KindReplicas {
    const TensorKind* kind;
    std::vector<Replicas> sets;  // by HolderSet
    Slot slot(std::int32_t position) const { return kind->source_slot[to_index(position)]; }
  };
  Slot take(const KindReplicas& of, Heap& heap, std::int64_t bytes);
  void refresh(const KindReplicas& of, Heap& heap) const;
  void compute_shares();

  const Topology* topology_;
  std::vector<KindReplicas> kinds_;
  std::vector<std::int64_t> sent_;     // by slot; heaps are brought up to date when used
  std::vector<std::int64_t> shares_;   // by slot: of all that is expected; empty until it is needed
  std::vector<std::int32_t> node_of_;  // by slot; empty: one node, or not known
};

}  // namespace reshard
