// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/entry.h"

#include <algorithm>
#include <map>

#include "core/base/units.h"

namespace reshard {

std::int64_t entry_bound_ps(Int128 bytes, const EntryWays& ways) {
  // Bytes that may have come straight when the first relayed one is there, rounded up: the bound
  // stays a bound.
  Int128 early = ceil_div(ways.straight.bytes_per_s * ways.inside_ps, Int128{kPsPerSecond});
  if (bytes <= early || ways.relayed_bytes_per_s == 0) return ways.straight.least_ps(bytes);
  Passage both{ways.straight.bytes_per_s + ways.relayed_bytes_per_s,
               ways.straight.latency_ps + ways.inside_ps};
  return both.least_ps(bytes - early);
}

std::int64_t entry_bound_ps(const std::vector<Int128>& far, std::int64_t width,
                            const Topology& topology, const std::vector<Rank>& ranks) {
  // Ranks of one class in one node have the same ways; the one that lacks most decides.
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> most;  // (node, class) -> rank
  for (std::size_t rank = 0; rank < far.size(); ++rank) {
    if (far[rank] == 0) continue;
    auto key = std::pair(topology.node_of(ranks[rank]), topology.class_of(ranks[rank]));
    std::size_t& best = most.try_emplace(key, rank).first->second;
    if (far[rank] > far[best]) best = rank;
  }
  if (most.empty()) return 0;
  JobCapacities capacities(topology, ranks);
  std::int64_t bound = 0;
  for (const auto& [key, rank] : most) {
    auto [straight, beside, gate] = capacities.ways_into(key.first, {ranks[rank]});
    Int128 relayed = std::min(beside.bytes_per_s, gate.bytes_per_s);
    EntryWays ways{straight, relayed, relayed > 0 ? beside.latency_ps : 0};
    bound = std::max(bound, entry_bound_ps(far[rank] * width, ways));
  }
  return bound;
}

}  // namespace reshard
