// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/copy_carrier.h"

#include <algorithm>
#include <numeric>

#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "core/traffic/workload.h"
#include "sim/transport/ideal_carrier.h"

namespace reshard::sim {
namespace {

// The driver's staging buffers forward data in pieces of this size; relays between nodes use NCCL's
// chunks (nccl.h of 2.30: 64 MiB).
constexpr std::int64_t kStagingChunk = 32 * 1024, kRelayChunk = std::int64_t{64} << 20;

bool by_copies(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather || kind == CollectiveKind::AllToAll;
}

std::int64_t narrowest(const Topology& topology, Rank source, Rank destination) {
  std::int64_t least = kMaxBytes;
  for (const Hop& hop : topology.rule(source, destination).hops)
    least =
        std::min(least, topology.resource_bytes_per_s(topology.resource(hop, source, destination)));
  return least;
}

std::int64_t scaled(std::int64_t value, std::int64_t by, std::int64_t of) {
  return static_cast<std::int64_t>(std::clamp<Int128>(Int128{value} * by / of, 1, kMaxBytes));
}

// A copy from each part to each other part.
void add_pairs(std::span<const std::int32_t> members, std::int64_t bytes, std::int64_t waits_ps,
               std::int32_t first_part, std::vector<Flow>& flows) {
  for (std::size_t k = 1; k < members.size(); ++k)
    for (std::size_t i = 0; i < members.size(); ++i)
      flows.push_back({first_part + members[i],
                       first_part + members[(i + k) % members.size()],
                       bytes,
                       {waits_ps, kMaxBytes}});
}

std::vector<Slot> slots_of_ranks(std::size_t count) {
  std::vector<Slot> slots(count);
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

}  // namespace

CopyCarrier::CopyCarrier(const Topology& topology, const nccl::Constants& constants)
    : topology_(topology), nccl_(topology, constants) {}

std::int64_t CopyCarrier::figure(Figure which) const {
  return topology_.machine().figure(which).value_or(
      nccl::default_figure(which, nccl::gpus_of(topology_).compute_capability));
}

Terms CopyCarrier::copy_terms(const Flow& flow, Rank source, Rank destination, std::int64_t before,
                              std::int64_t of_source) const {
  const RouteRule& rule = topology_.rule(source, destination);
  std::int64_t engines = std::max<std::int64_t>(1, figure(Figure::CopyEngines) / kRatioOne);
  std::int64_t launches = 1 + (before + flow.ranges - 1) / engines;
  Terms terms{figure(Figure::CopyLaunch) * launches + rule.latency_ps + flow.terms.latency_ps,
              rule.cap_bytes_per_s.value_or(narrowest(topology_, source, destination))};
  if (rule.transport == Transport::NVLink)
    terms.cap_bytes_per_s =
        scaled(terms.cap_bytes_per_s, figure(Figure::CopyEfficiency), kRatioOne);
  if (rule.transport == Transport::Host)
    terms.latency_ps += figure(Figure::CopyStaging) +
                        transfer_ps(std::min(flow.bytes, kStagingChunk), terms.cap_bytes_per_s);
  terms.mover = Mover::Engines;
  std::int64_t shared = figure(Figure::CopyShared);
  if (of_source > 1 && shared < kRatioOne) {
    std::int64_t out =
        topology_.resource_bytes_per_s(topology_.resource(rule.hops.front(), source, destination));
    terms.cap_bytes_per_s =
        std::min(terms.cap_bytes_per_s, scaled(out, shared, kRatioOne * of_source));
  }
  if (of_source > engines)
    terms.cap_bytes_per_s = scaled(terms.cap_bytes_per_s, engines, of_source);
  return terms;
}

void CopyCarrier::price(std::span<const Rank> communicator, std::span<const Rank> ranks,
                        std::vector<Flow>& flows) {
  auto rank = [&](std::int32_t part) { return ranks[to_index(part)]; };
  auto networked = [&](const Flow& flow) {
    return topology_.node_of(rank(flow.source)) != topology_.node_of(rank(flow.destination));
  };
  auto copies = std::stable_partition(flows.begin(), flows.end(), networked);
  std::vector<Flow> posted(flows.begin(), copies);
  if (!posted.empty()) nccl_.price_messages(communicator, ranks, posted);
  std::copy(posted.begin(), posted.end(), flows.begin());
  std::vector<std::int64_t> count(ranks.size(), 0), before(ranks.size(), 0);
  for (auto flow = copies; flow != flows.end(); ++flow) ++count[to_index(flow->source)];
  // The largest are launched first, independent of rank numbers.
  std::vector<Flow*> launched;
  for (auto flow = copies; flow != flows.end(); ++flow) launched.push_back(&*flow);
  std::ranges::stable_sort(launched, [](const Flow* a, const Flow* b) {
    return std::pair(b->bytes, a->ranges) < std::pair(a->bytes, b->ranges);
  });
  for (Flow* flow : launched) {
    auto source = to_index(flow->source);
    flow->terms = copy_terms(*flow, rank(flow->source), rank(flow->destination), before[source],
                             count[source]);
    before[source] += flow->ranges;
  }
}

void CopyCarrier::add_copies(CollectiveKind kind, std::span<const Rank> ranks,
                             std::int32_t first_part, std::int64_t bytes,
                             std::vector<Flow>& flows) const {
  std::vector<std::int32_t> all(ranks.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<std::int32_t>> nodes = members_by_node(topology_, ranks);
  bool alike = std::all_of(nodes.begin(), nodes.end(),
                           [&](const auto& node) { return node.size() == nodes.front().size(); });
  if (kind == CollectiveKind::AllToAll || nodes.size() == 1 || !alike) {
    add_pairs(all, bytes, 0, first_part, flows);
    return;
  }
  for (const auto& node : nodes) add_pairs(node, bytes, 0, first_part, flows);
  // Peers at the same place, and what they forward within their nodes.
  for (std::size_t place = 0; place < nodes.front().size(); ++place) {
    std::vector<std::int32_t> peers;
    for (const auto& node : nodes) peers.push_back(node[place]);
    add_pairs(peers, bytes, 0, first_part, flows);
    Rank here = ranks[to_index(peers[0])], there = ranks[to_index(peers[1])];
    std::int64_t first_chunk_ps =
        topology_.rule(here, there).latency_ps +
        transfer_ps(std::min(bytes, kRelayChunk), narrowest(topology_, here, there));
    for (const auto& node : nodes)
      for (std::size_t other = 0; other < node.size(); ++other)
        if (other != place)
          flows.push_back({first_part + node[place],
                           first_part + node[other],
                           bytes * static_cast<std::int64_t>(nodes.size() - 1),
                           {first_chunk_ps, kMaxBytes}});
  }
}

Transfers CopyCarrier::step(const Plan& plan, const Step& step) {
  std::optional<StepTraffic> sent = step_traffic(plan, step);
  if (!sent) return Transfers(plan, step);
  auto size = to_index(sent->group_size);
  if (sent->kind && (!by_copies(*sent->kind) || nccl::too_many(size, sent->group_bytes.size())))
    return nccl_.step(plan, step);
  std::vector<Rank> ranks;
  for (Slot slot : sent->slots) ranks.push_back(plan.rank_of(slot));
  for (std::size_t g = 0; g < sent->group_bytes.size(); ++g)
    add_copies(*sent->kind, std::span(ranks).subspan(g * size, size),
               static_cast<std::int32_t>(g * size), sent->group_bytes[g], sent->flows);
  price(plan.ranks, ranks, sent->flows);
  return nccl::in_order(sent->slots, sent->flows);
}

Transfers CopyCarrier::message(const PointToPoint& message) {
  std::vector<Rank> ranks{message.source, message.destination};
  std::vector<Flow> flows{{0, 1, message.bytes, {0, kMaxBytes}}};
  price(ranks, ranks, flows);
  Terms terms = flows[0].terms;
  terms.cap_bytes_per_s =
      std::min(terms.cap_bytes_per_s, message.cap_bytes_per_s.value_or(kMaxBytes));
  return Transfers::message(message.bytes, terms);
}

Transfers CopyCarrier::collective(const BareCollective& collective) {
  const std::vector<Rank>& ranks = collective.ranks;
  std::optional<CollectiveKind> planned = collective.kind.of_plans();
  std::vector<Flow> flows;
  if (collective.kind == BareKind::Gather || collective.kind == BareKind::Scatter) {
    for (const RootedTransfer& transfer : rooted_transfers(collective))
      flows.push_back({transfer.source, transfer.destination, transfer.bytes, {0, kMaxBytes}});
  } else if (!planned || !by_copies(*planned) || nccl::too_many(ranks.size(), 1)) {
    return nccl_.collective(collective);
  } else {
    add_copies(*planned, ranks, 0, collective.bytes, flows);
  }
  price(ranks, ranks, flows);
  return nccl::in_order(slots_of_ranks(ranks.size()), flows);
}

}  // namespace reshard::sim
