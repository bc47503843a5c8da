// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/ideal_carrier.h"

#include <algorithm>
#include <numeric>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/traffic/workload.h"

namespace reshard::sim {
namespace {

// Rings of one group, with parts numbered from `first_part`.
void add_rings(const Topology& topology, std::span<const Rank> ranks, std::int32_t first_part,
               std::span<RingPlace> places) {
  std::vector<std::vector<std::int32_t>> nodes = members_by_node(topology, ranks);
  std::size_t rings = 1;
  if (nodes.size() > 1)
    rings = std::min_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
              return a.size() < b.size();
            })->size();
  std::int32_t position = 0;
  for (const auto& node : nodes)
    for (std::int32_t member : node)
      places[to_index(member)] = {position++, static_cast<std::int32_t>(rings), -1, -1, -1, -1};
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    const std::vector<std::int32_t>&here = nodes[k], &next = nodes[(k + 1) % nodes.size()];
    for (std::size_t i = 0; i < here.size(); ++i) {
      std::size_t after = (i + 1) % here.size();
      RingPlace& place = places[to_index(here[i])];
      // The ring that enters at the member after this one leaves here; the others stay within the
      // node.
      bool leaves = nodes.size() > 1 && after < rings;
      if (here.size() > 1 && rings > (leaves ? 1U : 0U)) {
        place.next = first_part + here[after];
        places[to_index(here[after])].previous = first_part + here[i];
      }
      if (!leaves) continue;
      place.next_out = first_part + next[after];
      places[to_index(next[after])].previous_out = first_part + here[i];
    }
  }
}

}  // namespace

std::vector<std::vector<std::int32_t>> members_by_node(const Topology& topology,
                                                       std::span<const Rank> ranks) {
  std::vector<std::int32_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return ranks[to_index(a)] < ranks[to_index(b)];
  });
  std::vector<std::vector<std::int32_t>> nodes;
  std::int32_t last = -1;
  for (std::int32_t member : order) {
    std::int32_t node = topology.node_of(ranks[to_index(member)]);
    if (node != last) nodes.emplace_back();
    last = node;
    nodes.back().push_back(member);
  }
  return nodes;
}

std::vector<RingPlace> rings_of(const Topology& topology, std::span<const Rank> ranks,
                                std::int32_t group_size) {
  std::vector<RingPlace> places(ranks.size());
  auto size = to_index(group_size);
  for (std::size_t first = 0; first < ranks.size(); first += size)
    add_rings(topology, ranks.subspan(first, size), static_cast<std::int32_t>(first),
              std::span(places).subspan(first, size));
  return places;
}

void cut_at_root(const BareCollective& collective, std::vector<Flow>& flows) {
  std::int32_t root = root_member(collective);
  std::erase_if(flows, [&](const Flow& flow) {
    return (collective.kind.from_root() ? flow.destination : flow.source) == root;
  });
}

std::vector<Flow> ring_flows(const Topology& topology, std::span<const Rank> ranks,
                             std::int64_t bytes) {
  auto n = static_cast<std::int32_t>(ranks.size());
  std::vector<RingPlace> places = rings_of(topology, ranks, n);
  std::vector<Flow> flows;
  for (std::int32_t source = 0; source < n; ++source) {
    const RingPlace& place = places[to_index(source)];
    std::int64_t leaving = place.next_out < 0 ? 0 : ceil_div(bytes, std::int64_t{place.rings});
    if (place.next >= 0) flows.push_back({source, place.next, bytes - leaving, {}});
    if (place.next_out >= 0) flows.push_back({source, place.next_out, leaving, {}});
  }
  return flows;
}

Transfers IdealCarrier::over_nics(Transfers transfers, std::span<const Rank> ranks) const {
  if (!transfers.is_ring()) return transfers;
  std::vector<RingPlace> places = rings_of(topology_, ranks, transfers.group_size());
  if (std::any_of(places.begin(), places.end(), [](const RingPlace& p) { return p.rings > 1; }))
    transfers.lay_rings(std::move(places));
  return transfers;
}

Transfers IdealCarrier::step(const Plan& plan, const Step& step) {
  Transfers transfers(plan, step);
  std::vector<Rank> ranks;
  if (transfers.is_ring() && topology_.nodes() > 1)
    for (Slot slot : transfers.slots()) ranks.push_back(plan.rank_of(slot));
  return ranks.empty() ? transfers : over_nics(std::move(transfers), ranks);
}

Transfers IdealCarrier::message(const PointToPoint& message) {
  if (!message.cap_bytes_per_s) return Transfers::message(message.bytes);
  std::vector<Flow> flow{
      {0,
       1,
       message.bytes,
       {topology_.rule(message.source, message.destination).latency_ps, *message.cap_bytes_per_s}}};
  return Transfers::flows(std::vector<Slot>{0, 1}, flow);
}

// A pipeline over several nodes uses the NICs that a ring has there.
Transfers IdealCarrier::collective(const BareCollective& collective) {
  if (!collective.kind.has_root() || collective.algorithm != Algorithm::Ring)
    return over_nics(Transfers::collective(collective), collective.ranks);
  std::vector<Flow> flows = ring_flows(topology_, collective.ranks, collective.bytes);
  cut_at_root(collective, flows);
  for (Flow& flow : flows) {
    const RouteRule& rule = topology_.rule(collective.ranks[to_index(flow.source)],
                                           collective.ranks[to_index(flow.destination)]);
    flow.terms = {rule.latency_ps, rule.cap_bytes_per_s.value_or(kMaxBytes)};
  }
  std::vector<Slot> slots(collective.ranks.size());
  std::iota(slots.begin(), slots.end(), 0);
  return Transfers::flows(slots, flows);
}

}  // namespace reshard::sim
