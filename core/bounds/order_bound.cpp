// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/order_bound.h"

#include <algorithm>
#include <limits>

#include "core/base/errors.h"

namespace reshard {
namespace {

constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();

// The least latency of all routes of the topology into the rank, or out of it.
std::int64_t least_latency_ps(const Topology& topology, Rank rank, bool into) {
  const NodeTemplate& node = topology.node();
  std::int32_t classes = topology.classes(), mine = topology.class_of(rank);
  std::int64_t least = kLatest;
  for (std::int32_t other = 0; other < classes; ++other) {
    std::int32_t rule = node.rule_within[into ? other * classes + mine : mine * classes + other];
    if (rule >= 0) least = std::min(least, node.rules[rule].latency_ps);
  }
  if (topology.nodes() > 1) least = std::min(least, node.rules[node.rule_between].latency_ps);
  return least;
}

}  // namespace

std::int64_t least_transfer_ps(Int128 bytes, Int128 bytes_per_s) {
  if (bytes == 0) return 0;
  return static_cast<std::int64_t>(
      std::min<Int128>(ceil_div(bytes * 1'000'000'000'000, bytes_per_s), kLatest));
}

std::int64_t later_ps(std::int64_t at, std::int64_t by) {
  return by > kLatest - at ? kLatest : at + by;
}

std::vector<std::int64_t> part_bounds_ps(const std::vector<Int128>& in_bytes, const CutSets& sets) {
  std::vector<std::int64_t> out(sets.ranks().size(), 0);
  if (sets.levels().empty()) return out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t set = sets.levels().front().first_set + 2 * i;  // the rank; set + 1: all others
    for (bool into : {true, false}) {
      std::size_t at = into ? set : set + 1;
      if (in_bytes[at] == 0) continue;
      out[i] = std::max({out[i], least_transfer_ps(in_bytes[at], sets.capacity_in(at)),
                         least_latency_ps(sets.topology(), sets.ranks()[i], into)});
    }
  }
  return out;
}

std::int64_t order_bound_ps(std::span<const Request> requests, const Stages& stages,
                            const CutSets& sets) {
  const std::vector<Rank>& ranks = sets.ranks();
  std::vector<std::vector<std::int64_t>> done;  // by stage and rank
  std::int64_t end = 0;
  for (const Stage& stage : stages) {
    std::vector<Request> own;
    for (TensorId tensor : stage.tensors) own.push_back(requests[to_index(tensor)]);
    std::vector<std::int64_t>& at = done.emplace_back(ranks.size(), 0);
    for (std::int32_t before : stage.after)
      for (std::size_t i = 0; i < at.size(); ++i)
        at[i] = std::max(at[i], done[to_index(before)][i]);
    std::int64_t first = kLatest;
    for (Rank rank : ranks_of(own))
      first = std::min(
          first, at[to_index(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin())]);
    RequestDemand demand = demand_of(own, sets);
    end = std::max(end, later_ps(first, bound_of(demand, sets).time_ps()));
    std::vector<std::int64_t> parts = part_bounds_ps(demand.in_bytes, sets);
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = later_ps(at[i], parts[i]);
      end = std::max(end, at[i]);
    }
  }
  return end;
}

Bound bound_of(std::span<const Request> requests, const Stages& stages, const Topology& topology,
               Switches use) {
  CutSets sets(topology, ranks_of(requests), use);
  Bound out = bound_of(demand_of(requests, sets), sets);
  out.order_ps = order_bound_ps(requests, stages, sets);
  return out;
}

}  // namespace reshard
