// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/entry.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/units.h"
#include "core/bounds/latency.h"

namespace reshard {
namespace {

// Bytes that get through in this time, rounded up, which keeps the bound valid.
Int128 let_through(Int128 bytes_per_s, std::int64_t from_ps, std::int64_t to_ps) {
  if (to_ps <= from_ps) return 0;
  Int128 ps = Int128{to_ps} - from_ps, whole = ps / kPsPerSecond, rest = ps % kPsPerSecond;
  return bytes_per_s * whole + ceil_div(bytes_per_s * rest, Int128{kPsPerSecond});
}

// The same at rate `first` until `change_ps` and at rate `later` from then on.
Int128 let_through(Int128 first, Int128 later, std::int64_t change_ps, std::int64_t from_ps,
                   std::int64_t to_ps) {
  return let_through(first, from_ps, std::min(to_ps, change_ps)) +
         let_through(later, std::max(from_ps, change_ps), to_ps);
}

bool can_enter(std::span<const Int128> by_needers, const NodeEntrance& by, std::int64_t t_ps) {
  std::int64_t change_ps = by.between_ps + by.spread_ps,
               early_ps = std::max(by.between_ps, t_ps - by.inside_ps);
  Int128 early = let_through(by.first, by.later, change_ps, by.between_ps, early_ps),
         late = let_through(by.first_at_need, by.later_at_need, change_ps, early_ps, t_ps);
  for (std::size_t needers = by_needers.size(); needers-- > 1;) {
    Int128 enters = std::min(early, by_needers[needers]);
    early -= enters;
    late -= (by_needers[needers] - enters) * static_cast<std::int64_t>(needers);
    if (late < 0) return false;
  }
  return true;
}

}  // namespace

std::int64_t entry_bound_ps(Int128 bytes, const EntryPassages& passages) {
  // Bytes that can have come directly before the first relayed one arrives, rounded up, which keeps
  // the bound valid.
  Int128 early = ceil_div(passages.direct.bytes_per_s * passages.inside_ps, Int128{kPsPerSecond});
  if (bytes <= early) return passages.direct.least_ps(bytes);
  Passage both{passages.direct.bytes_per_s + passages.relayed_bytes_per_s,
               passages.direct.latency_ps + passages.inside_ps};
  return both.least_ps(bytes - early);
}

std::int64_t node_entry_bound_ps(std::span<const Int128> by_needers, const NodeEntrance& entrance) {
  if (std::all_of(by_needers.begin(), by_needers.end(), [](Int128 bytes) { return bytes == 0; }))
    return 0;
  std::int64_t too_soon = entrance.between_ps, enough = std::numeric_limits<std::int64_t>::max();
  while (enough - too_soon > 1) {
    std::int64_t middle = too_soon + (enough - too_soon) / 2;
    (can_enter(by_needers, entrance, middle) ? enough : too_soon) = middle;
  }
  return enough;
}

FarCount::FarCount(const MemberLists& holders, const MemberLists& needers,
                   std::vector<std::int32_t> node_of)
    : holders_(holders),
      needers_(needers),
      node_of_(std::move(node_of)),
      of_rank_(node_of_.size(), 0),
      sends_(holders.size(), false) {}

void FarCount::add_far(std::size_t holder_list, std::int32_t node, std::span<const Member> needers,
                       std::int64_t elements) {
  sends_[holder_list] = true;
  for (const Member& needer : needers) of_rank_[to_index(needer.rank)] += elements;
  if (to_index(node) >= by_needers_.size()) by_needers_.resize(to_index(node) + 1);
  std::vector<Int128>& of_node = by_needers_[to_index(node)];
  if (needers.size() >= of_node.size()) of_node.resize(needers.size() + 1, 0);
  of_node[needers.size()] += elements;
}

std::int64_t FarCount::bound_ps(std::int64_t width, const Topology& topology,
                                const std::vector<Rank>& ranks, JobCapacities& capacities,
                                bool network_multicasts) const {
  if (by_needers_.empty()) return 0;
  std::int64_t of_ranks = rank_bound_ps(width, topology, ranks, capacities);
  return network_multicasts ? of_ranks
                            : std::max(of_ranks, node_bound_ps(width, topology, ranks, capacities));
}

std::int64_t FarCount::rank_bound_ps(std::int64_t width, const Topology& topology,
                                     const std::vector<Rank>& ranks,
                                     const JobCapacities& capacities) const {
  // Ranks of one class on one node have the same routes, so the one that lacks most decides.
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> most;  // (node, class) -> rank
  for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) {
    if (of_rank_[rank] == 0) continue;
    auto key = std::pair(topology.node_of(ranks[rank]), topology.class_of(ranks[rank]));
    std::size_t& best = most.try_emplace(key, rank).first->second;
    if (of_rank_[rank] > of_rank_[best]) best = rank;
  }
  std::int64_t bound = 0;
  for (const auto& [key, rank] : most) {
    auto [direct, within, gate] = capacities.passages_into(key.first, {ranks[rank]});
    Int128 relayed = std::min(within.bytes_per_s, gate.bytes_per_s);
    EntryPassages passages{direct, relayed, relayed > 0 ? within.latency_ps : 0};
    bound = std::max(bound, entry_bound_ps(of_rank_[rank] * width, passages));
  }
  return bound;
}

std::int64_t FarCount::node_bound_ps(std::int64_t width, const Topology& topology,
                                     const std::vector<Rank>& ranks,
                                     JobCapacities& capacities) const {
  std::vector<bool> sends(ranks.size(), false);
  for (std::size_t list = 0; list < sends_.size(); ++list)
    if (sends_[list])
      for (const Member& holder : holders_.list(list)) sends[to_index(holder.rank)] = true;
  JobLatencies latencies(topology, ranks);
  std::int64_t between_ps = latencies.between_nodes_ps(), inside_ps = latencies.least_within_ps();

  std::size_t count = to_index(*std::max_element(node_of_.begin(), node_of_.end())) + 1;
  std::vector<std::vector<Rank>> of_node(count), in_need(count);
  std::vector<std::int64_t> senders(count, 0);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::size_t node = to_index(node_of_[rank]);
    senders[node] += sends[rank];
    of_node[node].push_back(ranks[rank]);
    if (of_rank_[rank] > 0) in_need[node].push_back(ranks[rank]);
  }
  std::int64_t all_senders = std::accumulate(senders.begin(), senders.end(), std::int64_t{0});

  std::int64_t bound = 0;
  // Values of the previous node: most nodes equal the one before.
  std::vector<Int128> last_bytes;
  NodeEntrance last_entrance{};
  for (std::size_t node = 0; node < by_needers_.size(); ++node) {
    if (by_needers_[node].empty()) continue;
    std::vector<Int128> bytes = by_needers_[node];
    for (Int128& each : bytes) each *= width;
    auto others = static_cast<std::int64_t>(ranks.size() - of_node[node].size());
    auto entering = [&](const std::vector<Rank>& members) {
      return std::pair(capacities.from_elsewhere(all_senders - senders[node], members).bytes_per_s,
                       capacities.from_elsewhere(others, members).bytes_per_s);
    };
    auto [first, later] = entering(of_node[node]);
    auto [first_at_need, later_at_need] = entering(in_need[node]);
    NodeEntrance entrance{first,
                          first_at_need,
                          later,
                          later_at_need,
                          between_ps,
                          inside_ps,
                          std::min(inside_ps, between_ps)};
    if (bytes == last_bytes && entrance == last_entrance) continue;
    bound = std::max(bound, node_entry_bound_ps(bytes, entrance));
    last_bytes = std::move(bytes);
    last_entrance = entrance;
  }
  return bound;
}

}  // namespace reshard
