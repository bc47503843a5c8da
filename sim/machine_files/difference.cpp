// SPDX-License-Identifier: BSD-3-Clause
// Compares two machines. They are the same to every plan if the same pairs share resources of the
// same rates. A resource is identified by the pairs of devices that cross it; of several with the
// same pairs only the slowest counts. Two nodes of each machine are compared.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/units.h"
#include "sim/machine_files/writers/writers.h"

namespace reshard::sim {
namespace {

using Pair = std::pair<std::int32_t, std::int32_t>;

Topology two_nodes(const TopologyDescription& description) {
  TopologyDescription copy = description;
  copy.counts = TopologyDescription::Counts::Nothing;
  bool between = std::any_of(copy.routes.begin(), copy.routes.end(), [](const RouteLine& route) {
    return route.where == RouteLine::Where::Between;
  });
  copy.nodes = between ? 2 : 1;
  return build_topology(copy, std::nullopt);
}

template <class Visit>
void for_each_pair(const Topology& topology, Visit&& visit) {
  for (std::int32_t a = 0; a < topology.devices(); ++a)
    for (std::int32_t b = 0; b < topology.devices(); ++b)
      if (a != b) visit(a, b);
}

// Rates of resources, by the pairs that cross them.
std::map<std::vector<Pair>, std::int64_t> shared_by(const Topology& topology) {
  std::map<ResourceId, std::vector<Pair>> crossing;
  for_each_pair(topology, [&](std::int32_t a, std::int32_t b) {
    for (const Hop& hop : topology.rule(Rank{a}, Rank{b}).hops)
      crossing[topology.resource(hop, Rank{a}, Rank{b})].push_back({a, b});
  });
  std::map<std::vector<Pair>, std::int64_t> out;
  for (auto& [resource, pairs] : crossing) {
    std::int64_t rate = topology.resource_bytes_per_s(resource);
    auto [entry, is_new] = out.try_emplace(std::move(pairs), rate);
    if (!is_new) entry->second = std::min(entry->second, rate);
  }
  return out;
}

std::string path_text(const Topology& topology, std::int32_t a, std::int32_t b) {
  const RouteRule& rule = topology.rule(Rank{a}, Rank{b});
  std::int64_t rate = rule.cap_bytes_per_s.value_or(kMaxBytes);
  for (const Hop& hop : rule.hops)
    rate = std::min(rate, topology.resource_bytes_per_s(topology.resource(hop, Rank{a}, Rank{b})));
  return fmt::format("{} {} at {}", text(rule.transport), text(rule.path_class()), rate_text(rate));
}

std::string pair_text(Pair pair) { return fmt::format("device {} to {}", pair.first, pair.second); }

}  // namespace

std::optional<std::string> difference(const TopologyDescription& one,
                                      const TopologyDescription& other) {
  if (one.devices != other.devices)
    return fmt::format("{} devices, not {}", one.devices, other.devices);
  Topology a = two_nodes(one), b = two_nodes(other);
  if (a.devices() != b.devices()) return "a network on one side only";
  std::optional<std::string> found;
  for_each_pair(a, [&](std::int32_t from, std::int32_t to) {
    if (found) return;
    std::string here = path_text(a, from, to), there = path_text(b, from, to);
    if (here != there)
      found = fmt::format("from {} {}, not {}", pair_text({from, to}), here, there);
  });
  if (found) return found;
  auto here = shared_by(a), there = shared_by(b);
  for (const auto& [pairs, rate] : here) {
    auto match = there.find(pairs);
    if (match == there.end() || match->second != rate)
      return fmt::format("{} shared by {} pairs of devices, the first from {}", rate_text(rate),
                         pairs.size(), pair_text(pairs.front()));
  }
  if (here.size() != there.size()) return "pairs of devices that share nothing";
  return std::nullopt;
}

}  // namespace reshard::sim
