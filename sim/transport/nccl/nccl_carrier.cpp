// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/nccl/nccl_carrier.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"
#include "core/base/units.h"
#include "core/traffic/workload.h"
#include "sim/transport/ideal_carrier.h"

namespace reshard::sim::nccl {
namespace {

// us -> ps, to the nearest.
std::int64_t ps_of(double us) {
  double ps = us * 1e6 + 0.5;
  return ps < 4e18 ? static_cast<std::int64_t>(ps) : std::int64_t{4'000'000'000'000'000'000};
}

// Terms under which `bytes`, alone, take `time_ps` in total and move in the last `moving_ps` of it.
Terms terms_for(std::int64_t bytes, std::int64_t moving_ps, std::int64_t time_ps) {
  moving_ps = std::clamp<std::int64_t>(moving_ps, 1, std::max<std::int64_t>(1, time_ps));
  Int128 work = Int128{bytes} * kPsPerSecond;
  Int128 rate = std::clamp<Int128>((work + moving_ps - 1) / moving_ps, 1, kMaxBytes);
  auto taken = static_cast<std::int64_t>((work + rate - 1) / rate);
  return {std::max<std::int64_t>(0, time_ps - taken), static_cast<std::int64_t>(rate)};
}

Function function_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
      return Function::AllGather;
    case CollectiveKind::ReduceScatter:
      return Function::ReduceScatter;
    default:
      return Function::AllReduce;
  }
}

// What one rank of a group sends within its node and, if the group has several nodes, the total
// that leaves a node: over the whole operation, by algorithm. `bytes` as nccl-tests counts.
struct Sent {
  Int128 within, between;
};
Sent sent_by(const Choice& choice, Function function, const CommunicatorShape& comm, Int128 bytes) {
  int n = comm.ranks, per_node = comm.ranks_per_node();
  bool all = function == Function::AllReduce;
  Int128 ring = bytes * (n - 1) / n * (all ? 2 : 1);
  // Up a tree and down again; an inner node has two children.
  Int128 tree = bytes * (comm.nodes > 2 ? 2 : 1);
  switch (choice.algorithm) {
    case Algorithm::Nvls:
      return {all ? bytes * (per_node + 1) / per_node : bytes, 0};
    case Algorithm::NvlsTree:
      return {bytes * (per_node + 1) / per_node, tree};
    case Algorithm::Tree:
      return {bytes, tree};
    default:
      return {ring, ring};
  }
}

// The flows along the rings of a group; each ring carries an equal share.
std::vector<Flow> flows_along(const std::vector<RingPlace>& places, const Sent& sent) {
  auto share = [](Int128 bytes, std::int64_t count, std::int64_t of) {
    return static_cast<std::int64_t>(bytes * count / of);
  };
  std::vector<Flow> out;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const RingPlace& place = places[i];
    auto source = static_cast<std::int32_t>(i);
    std::int64_t rings = place.rings, leaving = place.next_out >= 0 ? 1 : 0;
    if (place.next >= 0)
      out.push_back({source, place.next, share(sent.within, rings - leaving, rings), {}});
    if (place.next_out >= 0)
      out.push_back({source, place.next_out, share(sent.between, 1, rings), {}});
  }
  return out;
}

// Spreads what each member sends to the next over all other members evenly.
constexpr std::int64_t kMaxMeshed = 32;
std::vector<Flow> spread(const std::vector<Flow>& ring, std::int32_t n) {
  std::vector<Flow> out;
  for (const Flow& flow : ring)
    for (std::int32_t k = 1; k < n; ++k) {
      std::int64_t from = flow.bytes / (n - 1) * (k - 1) + flow.bytes % (n - 1) * (k - 1) / (n - 1),
                   to = flow.bytes / (n - 1) * k + flow.bytes % (n - 1) * k / (n - 1);
      out.push_back({flow.source, (flow.source + k) % n, to - from, {}});
    }
  return out;
}

}  // namespace

Transfers in_order(std::span<const Slot> slots, std::vector<Flow>& flows) {
  std::stable_sort(flows.begin(), flows.end(),
                   [](const Flow& a, const Flow& b) { return a.source < b.source; });
  return Transfers::flows(slots, flows);
}

bool too_many(std::size_t n, std::size_t groups) {
  return static_cast<Int128>(n) * static_cast<Int128>(n) * static_cast<Int128>(groups) >
         kMaxInFlight;
}

NcclCarrier::NcclCarrier(const Topology& topology, const Constants& constants)
    : topology_(topology), constants_(constants), parameters_(parameters_of(topology)) {}

std::size_t NcclCarrier::Hash::operator()(const std::vector<Rank>& ranks) const {
  std::size_t hash = ranks.size();
  for (Rank rank : ranks) hash = (hash ^ to_index(to_int(rank))) * std::size_t{0x9E3779B97F4A7C15};
  return hash;
}

const Costs& NcclCarrier::costs_of(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  auto found = known_.find(ranks);
  if (found == known_.end()) {
    Costs costs(constants_, parameters_, communicator_of(topology_, ranks));
    found = known_.emplace(std::move(ranks), std::move(costs)).first;
  }
  return found->second;
}

void NcclCarrier::hold_to_route(Terms& terms, Rank source, Rank destination) const {
  const RouteRule& rule = topology_.rule(source, destination);
  terms.latency_ps = std::max(terms.latency_ps, rule.latency_ps);
  if (rule.transport != Transport::Host) return;
  if (std::optional<std::int64_t> rate = topology_.machine().figure(Figure::HostRate))
    terms.cap_bytes_per_s = std::min(terms.cap_bytes_per_s, *rate);
}

void NcclCarrier::add_collective(CollectiveKind kind, std::span<const Rank> ranks,
                                 std::int32_t first_part, std::int64_t bytes,
                                 std::vector<Flow>& flows) {
  const Costs& costs = costs_of({ranks.begin(), ranks.end()});
  auto n = static_cast<std::int64_t>(ranks.size());
  if (kind == CollectiveKind::AllToAll) {
    std::vector<Flow> messages;
    for (std::int32_t from = 0; from < n; ++from)
      for (std::int32_t to = 0; to < n; ++to)
        if (from != to) messages.push_back({from, to, bytes, {}});
    price_messages(ranks, ranks, messages);
    for (Flow flow : messages) {
      flow.source += first_part;
      flow.destination += first_part;
      flows.push_back(flow);
    }
    return;
  }
  // As nccl-tests counts: all that is gathered, scattered or reduced.
  bool reduces_all = kind == CollectiveKind::AllReduce;
  Int128 whole = Int128{bytes} * (reduces_all ? 1 : n);
  if (whole > kMaxBytes) throw InputError("collective: expected at most 2^62 bytes, found more");
  auto size = static_cast<std::int64_t>(whole);
  Function function = function_of(kind);
  Choice choice = costs.choose(function, size);
  std::int64_t time_ps = ps_of(costs.time_us(function, choice, size)),
               latency_ps = std::min(time_ps, ps_of(costs.time_us(function, choice, 0)));
  std::vector<Flow> ring = flows_along(rings_of(topology_, ranks, static_cast<std::int32_t>(n)),
                                       sent_by(choice, function, costs.communicator(), whole));
  std::int64_t least_ps = lay(ring, ranks, costs, time_ps, nullptr);
  run_in(ring, ranks, costs, std::max(time_ps - latency_ps, least_ps), time_ps);
  for (Flow flow : ring) {
    flow.source += first_part;
    flow.destination += first_part;
    flows.push_back(flow);
  }
}

// Routes a group's ring, or the pipeline cut from it if there is a root, so that it fits the links;
// returns the least time in which it moves. If each pair has a link, several rings together use
// all.
std::int64_t NcclCarrier::lay(std::vector<Flow>& ring, std::span<const Rank> ranks,
                              const Costs& costs, std::int64_t time_ps,
                              const BareCollective* rooted) const {
  auto n = static_cast<std::int64_t>(ranks.size());
  std::vector<Flow> mesh;
  if (costs.communicator().nodes == 1 && n <= kMaxMeshed)
    mesh = spread(ring, static_cast<std::int32_t>(n));
  if (rooted != nullptr)
    for (std::vector<Flow>* flows : {&ring, &mesh}) cut_at_root(*rooted, *flows);
  std::int64_t least_ps = least_moving_ps(ring, ranks);
  if (least_ps <= time_ps || mesh.empty()) return least_ps;
  std::int64_t meshed_ps = least_moving_ps(mesh, ranks);
  if (meshed_ps < least_ps) ring = std::move(mesh);
  return std::min(least_ps, meshed_ps);
}

// Sets terms with which the flows, of one kernel per rank, take this long together and move in the
// last `moving_ps` of it.
void NcclCarrier::run_in(std::span<Flow> flows, std::span<const Rank> ranks, const Costs& costs,
                         std::int64_t moving_ps, std::int64_t time_ps) const {
  // One thread block per channel, shared by everything that a rank sends.
  auto sent = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(flows.size()) / static_cast<std::int64_t>(ranks.size()));
  auto blocks = static_cast<std::int32_t>(
      std::max<std::int64_t>(1, costs.communicator().ring.channels / sent));
  for (Flow& flow : flows) {
    flow.terms = terms_for(flow.bytes, moving_ps, time_ps);
    flow.terms.mover = Mover::Kernels;
    flow.terms.blocks = blocks;
    hold_to_route(flow.terms, ranks[to_index(flow.source)], ranks[to_index(flow.destination)]);
  }
}

// The time that the flows of an operation need on the resources that they share, all at rates in
// proportion to their bytes, with room for rates rounded up.
std::int64_t NcclCarrier::least_moving_ps(const std::vector<Flow>& flows,
                                          std::span<const Rank> ranks) const {
  struct Load {
    Int128 bytes = 0;
    std::int64_t flows = 0;
  };
  std::map<ResourceId, Load> loads;
  Int128 least = 0;
  for (const Flow& flow : flows) {
    Rank source = ranks[to_index(flow.source)], destination = ranks[to_index(flow.destination)];
    const RouteRule& rule = topology_.rule(source, destination);
    for (const Hop& hop : rule.hops) {
      Load& load = loads[topology_.resource(hop, source, destination)];
      load.bytes += flow.bytes;
      ++load.flows;
    }
    if (rule.cap_bytes_per_s)
      least = std::max(least, Int128{flow.bytes} * kPsPerSecond / *rule.cap_bytes_per_s + 1);
  }
  for (const auto& [resource, load] : loads) {
    std::int64_t rate = topology_.resource_bytes_per_s(resource) - load.flows;
    least = std::max(least, load.bytes * kPsPerSecond / std::max<std::int64_t>(1, rate) + 1);
  }
  return static_cast<std::int64_t>(std::min<Int128>(least, kMaxTimePs));
}

void NcclCarrier::price_messages(std::span<const Rank> communicator, std::span<const Rank> ranks,
                                 std::span<Flow> flows) {
  const Costs& costs = costs_of({communicator.begin(), communicator.end()});
  // By part, separately for sends and receives: bytes, thread blocks, messages.
  struct Load {
    std::int64_t bytes = 0;
    int channels = 0, messages = 0;
    double transfer_us = 0;
  };
  std::vector<Load> out(ranks.size()), in(ranks.size());
  auto rank = [&](std::int32_t part) { return ranks[to_index(part)]; };
  auto between_nodes = [&](const Flow& flow) {
    return topology_.node_of(rank(flow.source)) != topology_.node_of(rank(flow.destination));
  };
  for (Flow& flow : flows) {
    flow.terms.blocks = costs.channels_per_message(flow.bytes, between_nodes(flow));
    for (Load* load : {&out[to_index(flow.source)], &in[to_index(flow.destination)]}) {
      add_bytes(load->bytes, flow.bytes);
      load->channels = std::min(32, load->channels + flow.terms.blocks);
      ++load->messages;
    }
  }
  for (std::vector<Load>* loads : {&out, &in})
    for (Load& load : *loads)
      if (load.messages > 0) load.transfer_us = costs.transfer_us(load.bytes, load.channels);
  auto messages = [&](std::int32_t part) {
    return out[to_index(part)].messages + in[to_index(part)].messages;
  };
  for (Flow& flow : flows) {
    Costs::MessageTime taken{0, 0};
    if (messages(flow.source) == 1 && messages(flow.destination) == 1) {
      taken = costs.lone_message(flow.bytes, between_nodes(flow));
    } else {
      taken.moving_us = std::max(out[to_index(flow.source)].transfer_us,
                                 in[to_index(flow.destination)].transfer_us);
      taken.time_us = taken.moving_us + costs.message_latency_us(flow.bytes, between_nodes(flow));
    }
    taken.time_us += costs.packing_us(flow.ranges);
    const int blocks = flow.terms.blocks;
    flow.terms = terms_for(flow.bytes, ps_of(taken.moving_us), ps_of(taken.time_us));
    flow.terms.mover = Mover::Kernels;
    flow.terms.blocks = blocks;
    hold_to_route(flow.terms, rank(flow.source), rank(flow.destination));
  }
}

Transfers NcclCarrier::step(const Plan& plan, const Step& step) {
  std::optional<StepTraffic> sent = step_traffic(plan, step);
  auto size = sent ? to_index(sent->group_size) : 0;
  if (!sent || (sent->kind == CollectiveKind::AllToAll && too_many(size, sent->group_bytes.size())))
    return Transfers(plan, step);
  std::vector<Rank> ranks;
  for (Slot slot : sent->slots) ranks.push_back(plan.rank_of(slot));
  if (!sent->kind) {
    price_messages(plan.ranks, ranks, sent->flows);
    return Transfers::flows(sent->slots, sent->flows);
  }
  for (std::size_t g = 0; g < sent->group_bytes.size(); ++g)
    add_collective(*sent->kind, std::span(ranks).subspan(g * size, size),
                   static_cast<std::int32_t>(g * size), sent->group_bytes[g], sent->flows);
  Transfers transfers = in_order(sent->slots, sent->flows);
  if (sent->kind != CollectiveKind::AllToAll) transfers.gather(sent->group_size);
  return transfers;
}

Transfers NcclCarrier::message(const PointToPoint& message) {
  std::array<Rank, 2> ranks{message.source, message.destination};
  Flow flow{0, 1, message.bytes, {}};
  price_messages(ranks, ranks, {&flow, 1});
  flow.terms.cap_bytes_per_s =
      std::min(flow.terms.cap_bytes_per_s, message.cap_bytes_per_s.value_or(kMaxBytes));
  return Transfers::message(message.bytes, flow.terms);
}

// A broadcast or a reduce, for which NCCL only has rings.
std::vector<Flow> NcclCarrier::pipeline(const BareCollective& collective) {
  const Costs& costs = costs_of(collective.ranks);
  constexpr Function kFunction = Function::Broadcast;
  Choice choice = costs.choose(kFunction, collective.bytes);
  std::int64_t time_ps = ps_of(costs.time_us(kFunction, choice, collective.bytes)),
               latency_ps = std::min(time_ps, ps_of(costs.time_us(kFunction, choice, 0)));
  std::vector<Flow> flows = ring_flows(topology_, collective.ranks, collective.bytes);
  std::int64_t least_ps = lay(flows, collective.ranks, costs, time_ps, &collective);
  run_in(flows, collective.ranks, costs, std::max(time_ps - latency_ps, least_ps), time_ps);
  return flows;
}

// A gather or a scatter as PyTorch implements it: sends and receives in one group.
std::vector<Flow> NcclCarrier::rooted_messages(const BareCollective& collective) {
  std::vector<Flow> flows;
  for (const RootedTransfer& transfer : rooted_transfers(collective))
    flows.push_back({transfer.source, transfer.destination, transfer.bytes, {}});
  price_messages(collective.ranks, collective.ranks, flows);
  return flows;
}

Transfers NcclCarrier::collective(const BareCollective& issued) {
  BareCollective collective = as_carried(issued);
  auto n = static_cast<std::int32_t>(collective.ranks.size());
  if (collective.kind == BareKind::AllToAll && too_many(collective.ranks.size(), 1))
    return Transfers::collective(collective);
  bool messages = collective.kind == BareKind::AllToAll || collective.kind == BareKind::Gather ||
                  collective.kind == BareKind::Scatter;
  std::vector<Flow> flows;
  if (!collective.kind.has_root())
    add_collective(*collective.kind.of_plans(), collective.ranks, 0, collective.bytes, flows);
  else
    flows = messages ? rooted_messages(collective) : pipeline(collective);
  std::vector<Slot> slots(collective.ranks.size());
  std::iota(slots.begin(), slots.end(), 0);
  Transfers transfers = in_order(slots, flows);
  if (!messages) transfers.gather(n);
  return transfers;
}

}  // namespace reshard::sim::nccl
