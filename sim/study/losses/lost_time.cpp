// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/losses/lost_time.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "core/base/units.h"

namespace reshard::sim {
namespace {

// How many of the job's resources are of this kind of hop.
std::int64_t resources_of(const Hop& hop, const Topology& topology,
                          const std::vector<Rank>& ranks) {
  if (hop.kind == Hop::Kind::Fabric) return 1;
  if (hop.kind != Hop::Kind::SourceNodeShared) return static_cast<std::int64_t>(ranks.size());
  std::set<std::int32_t> nodes;
  for (Rank rank : ranks) nodes.insert(topology.node_of(rank));
  return static_cast<std::int64_t>(nodes.size());
}

bool between_nodes(const Hop& hop, const Topology& topology) {
  const NodeTemplate& node = topology.node();
  if (topology.nodes() < 2) return false;
  const std::vector<Hop>& crossed = node.rules[node.rule_between].hops;
  return std::any_of(crossed.begin(), crossed.end(), [&](Hop other) {
    if (other.kind == Hop::Kind::DestinationNodeShared) other.kind = Hop::Kind::SourceNodeShared;
    return other == hop;
  });
}

// Bytes that must enter the job's nodes, summed over nodes; 0 on a single node.
Int128 least_entering_nodes(const RequestDemand& demand, const CutSets& sets) {
  Int128 sum = 0;
  for (const CutLevel& level : sets.levels())
    for (std::size_t i = 0; level.of_nodes && i < level.names.size(); ++i)
      sum += demand.in_bytes[level.first_set + 2 * i];
  return sum;
}

// At least 1; none: infinite.
std::optional<std::int64_t> factor_e4(Int128 more, Int128 less) {
  if (less == 0) return more > 0 ? std::nullopt : std::optional<std::int64_t>(10'000);
  return static_cast<std::int64_t>(std::max<Int128>(10'000, more * 10'000 / less));
}

}  // namespace

std::string text(const LostTime& lost) {
  std::string factor =
      lost.factor_e4 ? decimal_text(*lost.factor_e4 / 100, 100, 2) + " x" : "without need";
  switch (lost.by) {
    case LostTime::By::NotFull:
      return "links not full " + factor;
    case LostTime::By::Few:
      return fmt::format("few {} {}", lost.kind, factor);
    case LostTime::By::Entered:
      return "nodes entered " + factor;
    case LostTime::By::Received:
      return "received " + factor;
    case LostTime::By::Only:
      return fmt::format("only {} {}", lost.kind, factor);
    case LostTime::By::Nothing:
      break;
  }
  return "-";
}

LostTime lost_time(const Timeline& timeline, const CutSets& sets, const RequestDemand& demand,
                   Int128 received_bytes) {
  const Topology& topology = sets.topology();
  std::int64_t bound_ps = bound_of(demand, sets).time_ps();
  auto alone_ps = [&](std::size_t id) {
    return Int128{timeline.resources[id].bytes} * kPsPerSecond /
           topology.resource_bytes_per_s(id_of<ResourceId>(id));
  };
  LostTime out;
  std::size_t busiest = 0;
  for (std::size_t id = 0; id < timeline.resources.size(); ++id)
    if (alone_ps(id) > alone_ps(busiest)) busiest = id;
  if (timeline.resources.empty() || alone_ps(busiest) == 0 ||
      Int128{timeline.end_ps} * 20 < Int128{bound_ps} * 21)
    return out;
  Hop hop = topology.hop_of(id_of<ResourceId>(busiest));
  out.kind = topology.hop_name(hop);
  Int128 sum_ps = 0;
  for (std::size_t id = 0; id < timeline.resources.size(); ++id)
    if (timeline.resources[id].bytes > 0 && topology.hop_of(id_of<ResourceId>(id)) == hop)
      sum_ps += alone_ps(id);
  std::int64_t resources = resources_of(hop, topology, sets.ranks());
  auto offer = [&](LostTime::By by, std::optional<std::int64_t> factor) {
    if (out.factor_e4 && (!factor || *factor > *out.factor_e4)) out.by = by, out.factor_e4 = factor;
  };
  // Full links would not end before the bound, which can be one of latencies.
  offer(LostTime::By::NotFull,
        factor_e4(timeline.end_ps, std::max(alone_ps(busiest), Int128{bound_ps})));
  offer(LostTime::By::Few, factor_e4(alone_ps(busiest) * resources, sum_ps));
  bool crosses = between_nodes(hop, topology);
  std::optional<std::int64_t> more =
      crosses ? factor_e4(timeline.routes[to_index(topology.node().rule_between)].bytes,
                          least_entering_nodes(demand, sets))
              : factor_e4(received_bytes, demand.receipts_bytes.front());
  offer(crosses ? LostTime::By::Entered : LostTime::By::Received, more);
  if (more)
    offer(LostTime::By::Only, factor_e4(sum_ps * 10'000, Int128{resources} * bound_ps * *more));
  return out;
}

}  // namespace reshard::sim
