// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/senders.h"

#include <algorithm>
#include <functional>

#include "core/base/integers.h"

namespace reshard {
namespace {

bool has_replicas(const TensorKind& kind) {
  for (std::size_t set = 0; set < kind.holder_sets(); ++set)
    if (kind.holder_count(static_cast<HolderSet>(set)) > 1) return true;
  return false;
}

}  // namespace

Senders::Senders(const Demand& demand, const Topology* topology)
    : topology_(topology), sent_(demand.ranks().size(), 0) {
  std::vector<bool> replicated(demand.ranks().size(), false);
  bool any = false;
  for (const TensorKind& kind : demand.kinds()) {
    kinds_.push_back({&kind, std::vector<Replicas>(kind.holder_sets())});
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
  std::size_t count = of.kind->holder_count(set.number);
  if (count == 1) {
    Slot slot = of.slot(of.kind->holder(set.number, 0));
    sent_[to_index(slot)] += bytes;
    return slot;
  }
  Heap& all = of.sets[to_index(set.number)].all;
  if (all.empty()) {
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(0, of.kind->holder(set.number, i));
    std::sort(all.begin(), all.end());  // a sorted list is a heap
  }
  return take(of, all, bytes);
}

// Every set's bytes are shared evenly by its replicas.
void Senders::compute_shares() {
  shares_.assign(sent_.size(), 0);
  for (const KindReplicas& of : kinds_)
    for (std::size_t number = 0; number < of.sets.size(); ++number) {
      std::int64_t expected = of.sets[number].expected;
      if (expected == 0) continue;
      auto set = static_cast<HolderSet>(number);
      std::size_t replicas = of.kind->holder_count(set);
      for (std::size_t i = 0; i < replicas; ++i)
        shares_[to_index(of.slot(of.kind->holder(set, i)))] +=
            ceil_div(expected, static_cast<std::int64_t>(replicas));
    }
}

std::optional<Slot> Senders::pick_near(Set set, std::int64_t bytes, Rank receiver) {
  KindReplicas& of = kinds_[set.kind];
  if (shares_.empty()) compute_shares();
  Replicas& replicas = of.sets[to_index(set.number)];
  auto before = [](const auto& entry, std::int32_t node) { return entry.first < node; };
  if (replicas.by_node.empty()) {
    std::vector<std::pair<std::int32_t, std::int32_t>> holders;  // node, position
    for (std::size_t i = 0; i < of.kind->holder_count(set.number); ++i) {
      std::int32_t position = of.kind->holder(set.number, i);
      holders.emplace_back(node_of_[to_index(of.slot(position))], position);
    }
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
