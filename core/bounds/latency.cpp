// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/latency.h"

#include <algorithm>
#include <limits>

namespace reshard {

constexpr std::int64_t kUnreached = std::numeric_limits<std::int64_t>::max();

JobLatencies::JobLatencies(const Topology& topology, const std::vector<Rank>& ranks)
    : topology_(topology),
      ranks_(static_cast<std::int64_t>(ranks.size())),
      least_within_(kUnreached) {
  for_each_node(topology, ranks,
                [this](std::int32_t node, std::size_t, std::span<const Rank> here) {
                  counts_.emplace_hint(counts_.end(), node, classes_of(topology_, here));
                });
  for (std::int32_t rule : topology_.node().rule_within) {
    if (rule < 0) continue;
    std::int64_t latency_ps = topology_.node().rules[rule].latency_ps;
    least_within_ = std::min(least_within_, latency_ps);
    greatest_within_ = std::max(greatest_within_, latency_ps);
  }
}

std::int64_t JobLatencies::between_nodes_ps() const {
  return topology_.node().rules[topology_.node().rule_between].latency_ps;
}

bool JobLatencies::uniform_within() const {
  return least_within_ == greatest_within_ &&
         (counts_.size() == 1 || between_nodes_ps() >= greatest_within_);
}

std::int64_t JobLatencies::within_node_ps(Rank source, Rank destination) {
  // Neither exceeds the direct route's latency, so the comparison cannot overflow.
  std::int64_t direct_ps = topology_.rule(source, destination).latency_ps,
               out_ps = least_ps(source, false), in_ps = least_ps(destination, true);
  return in_ps > direct_ps - out_ps ? direct_ps : out_ps + in_ps;
}

std::int64_t JobLatencies::least_ps(Rank rank, bool into) {
  std::int32_t node = topology_.node_of(rank), mine = topology_.class_of(rank),
               classes = topology_.classes();
  auto [known, is_new] = known_.try_emplace({node, mine, into}, kUnreached);
  if (!is_new) return known->second;
  const NodeTemplate& shape = topology_.node();
  std::int64_t here = 0;
  for (auto [other, count] : counts_.at(node)) {
    here += count;
    if (other == mine && count == 1) continue;
    std::int32_t rule = shape.rule_within[into ? other * classes + mine : mine * classes + other];
    known->second = std::min(known->second, shape.rules[rule].latency_ps);
  }
  if (here < ranks_) known->second = std::min(known->second, between_nodes_ps());
  return known->second;
}

OwnerLatency::OwnerLatency(const Topology& topology, const std::vector<Rank>& ranks,
                           const MemberLists& holders, const MemberLists& needers)
    : topology_(topology),
      ranks_(ranks),
      holders_(holders),
      needers_(needers),
      latencies_(topology, ranks) {}

void OwnerLatency::add(std::size_t holder_list, std::size_t needer_list) {
  std::span<const Member> owners = holders_.list(holder_list);
  for (const Member& needer : needers_.list(needer_list)) {
    if (greatest_ >= latencies_.greatest_within_ps()) return;
    Rank rank = ranks_[to_index(needer.rank)];
    std::int32_t node = topology_.node_of(rank);
    auto owner = std::partition_point(owners.begin(), owners.end(), [&](const Member& member) {
      return topology_.node_of(ranks_[to_index(member.rank)]) < node;
    });
    std::int64_t nearest = kUnreached;
    auto first = owner;
    for (; owner != owners.end(); ++owner) {
      Rank from = ranks_[to_index(owner->rank)];
      if (topology_.node_of(from) != node) break;
      nearest = std::min(nearest, from == rank ? 0 : latencies_.within_node_ps(from, rank));
    }
    if (nearest == kUnreached) continue;
    if (to_index(owner - first) < owners.size())
      nearest = std::min(nearest, latencies_.between_nodes_ps());
    greatest_ = std::max(greatest_, nearest);
  }
}

}  // namespace reshard
