// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/senders.h"

#include <algorithm>
#include <functional>

#include "core/base/integers.h"

namespace reshard {
namespace {

bool has_replicas(const TensorKind& kind) { return kind.source_cells.replica_offsets().size() > 1; }

}  // namespace

Senders::Senders(const Demand& demand, const Topology* topology)
    : topology_(topology), sent_(demand.ranks().size(), 0) {
  std::vector<bool> replicated(demand.ranks().size(), false);
  bool any = false;
  for (const TensorKind& kind : demand.kinds()) {
    kinds_.push_back({&kind, std::vector<Replicas>(kind.source_slot.size())});
    if (!has_replicas(kind)) continue;
    any = true;
    for (Slot slot : kind.source_slot) replicated[to_index(slot)] = true;
  }
  if (topology == nullptr || !any) return;
  for (Rank rank : demand.ranks()) node_of_.push_back(topology->node_of(rank));
  std::optional<std::int32_t> first;
  for (std::size_t slot = 0; slot < node_of_.size(); ++slot) {
    if (!replicated[slot]) continue;
    if (first && *first != node_of_[slot]) return;
    first = node_of_[slot];
  }
  node_of_.clear();
}

// Updates entries until that of the first is current.
void Senders::refresh(const KindReplicas& of, Heap& heap) const {
  auto sent = [&](std::int32_t position) { return sent_[to_index(of.slot(position))]; };
  while (heap.front().first != sent(heap.front().second)) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.back().first = sent(heap.back().second);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
}

Slot Senders::take(const KindReplicas& of, Heap& heap, std::int64_t bytes) {
  refresh(of, heap);
  Slot slot = of.slot(heap.front().second);
  sent_[to_index(slot)] += bytes;
  return slot;
}

Slot Senders::pick(Set set, std::int64_t bytes) {
  KindReplicas& of = kinds_[set.kind];
  if (of.offsets().size() == 1) {
    Slot slot = of.slot(set.base);
    sent_[to_index(slot)] += bytes;
    return slot;
  }
  Heap& all = of.sets[to_index(set.base)].all;
  if (all.empty()) {
    for (std::int32_t offset : of.offsets()) all.emplace_back(0, set.base + offset);
    std::sort(all.begin(), all.end());  // a sorted list is a heap
  }
  return take(of, all, bytes);
}

// Every set's bytes are shared evenly by its replicas.
void Senders::compute_shares() {
  shares_.assign(sent_.size(), 0);
  for (const KindReplicas& of : kinds_) {
    auto replicas = std::ssize(of.offsets());
    for (std::size_t base = 0; base < of.sets.size(); ++base)
      if (std::int64_t expected = of.sets[base].expected; expected > 0)
        for (std::int32_t offset : of.offsets())
          shares_[to_index(of.slot(static_cast<std::int32_t>(base) + offset))] +=
              ceil_div(expected, replicas);
  }
}

std::optional<Slot> Senders::pick_near(Set set, std::int64_t bytes, Rank receiver) {
  KindReplicas& of = kinds_[set.kind];
  if (shares_.empty()) compute_shares();
  Replicas& replicas = of.sets[to_index(set.base)];
  auto before = [](const auto& entry, std::int32_t node) { return entry.first < node; };
  if (replicas.by_node.empty()) {
    std::vector<std::pair<std::int32_t, std::int32_t>> holders;  // node, position
    for (std::int32_t offset : of.offsets())
      holders.emplace_back(node_of_[to_index(of.slot(set.base + offset))], set.base + offset);
    std::sort(holders.begin(), holders.end());
    for (auto [node, position] : holders) {
      if (replicas.by_node.empty() || replicas.by_node.back().first != node)
        replicas.by_node.push_back({node, {}});
      replicas.by_node.back().second.emplace_back(0, position);
    }
  }
  std::int32_t node = topology_->node_of(receiver);
  auto near = std::lower_bound(replicas.by_node.begin(), replicas.by_node.end(), node, before);
  if (near == replicas.by_node.end() || near->first != node) return std::nullopt;
  refresh(of, near->second);
  auto [sent, position] = near->second.front();
  if (sent >= shares_[to_index(of.slot(position))]) return std::nullopt;
  return take(of, near->second, bytes);
}

}  // namespace reshard
