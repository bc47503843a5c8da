// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/nccl/nccl_graph.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/errors.h"
#include "core/bounds/bounds.h"

namespace reshard::sim::nccl {
namespace {

// Speeds per channel that the search tries, GB/s.
constexpr std::array<double, 13> kIntra{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr std::array<double, 11> kIntraHopper{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr std::array<double, 12> kIntraBlackwell{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr std::array<double, 19> kInter{48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                        7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr std::array<double, 17> kInterHopper{48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                              15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr std::array<double, 22> kInterBlackwell{96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                                 20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};
constexpr int kMaxFound = 32;  // channels

std::span<const double> intra_speeds(int compute_capability) {
  switch (generation_of(compute_capability)) {
    case Generation::Hopper:
      return kIntraHopper;
    case Generation::Blackwell:
      return kIntraBlackwell;
    default:
      return kIntra;
  }
}

std::span<const double> inter_speeds(int compute_capability) {
  switch (generation_of(compute_capability)) {
    case Generation::Hopper:
      return kInterHopper;
    case Generation::Blackwell:
      return kInterBlackwell;
    default:
      return kInter;
  }
}

int whole(double count) { return static_cast<int>(std::min<double>(count + 1e-9, kMaxFound)); }

// Fast channels are split in two.
void duplicate(Graph& graph, int compute_capability) {
  bool few_enough = compute_capability < 90 || graph.intra >= 50 || graph.channels <= 4;
  if (graph.intra < 25 || !few_enough) return;
  graph.channels *= 2;
  graph.intra /= 2;
  graph.inter /= 2;
}

double gb(Int128 bytes_per_s) { return static_cast<double>(bytes_per_s) / 1e9; }

// Over NVLink, a cap of at least three quarters of the links' rate is the rate that copies reach;
// NCCL's rate follows from the links.
bool is_reach_of_copies(const Topology& topology, Rank from, Rank to) {
  const RouteRule& rule = topology.rule(from, to);
  if (rule.path_class() > PathClass::NVB) return false;
  std::int64_t carried = kMaxBytes;
  for (const Hop& hop : rule.hops)
    carried = std::min(carried, topology.resource_bytes_per_s(topology.resource(hop, from, to)));
  return *rule.cap_bytes_per_s >= carried - carried / 4;
}

// Sum of the caps of flows into one rank, if every flow has its own cap, as when each pair has a
// link.
std::optional<Int128> caps_into(const Topology& topology, std::span<const Rank> ranks, Rank to) {
  Int128 sum = 0;
  for (Rank from : ranks) {
    if (from == to) continue;
    std::optional<std::int64_t> cap = topology.rule(from, to).cap_bytes_per_s;
    if (!cap || is_reach_of_copies(topology, from, to)) return std::nullopt;
    sum += *cap;
  }
  return sum;
}

// GB/s that can enter the narrowest of the sets of these ranks, which are on one node.
double narrowest(const Topology& topology, const std::vector<Rank>& ranks) {
  CutSets sets(topology, ranks);
  Int128 least = sets.capacity_in(0);
  for (Rank rank : ranks)
    if (std::optional<Int128> caps = caps_into(topology, ranks, rank))
      least = std::min(least, *caps);
  for (std::size_t set = 1; set < sets.size(); ++set)
    least = std::min(least, sets.capacity_in(set));
  return gb(least);
}

// The ranks of each node, ascending.
std::vector<std::vector<Rank>> by_node(const Topology& topology, std::span<const Rank> ranks) {
  std::vector<Rank> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::vector<Rank>> out;
  for (Rank rank : sorted) {
    if (out.empty() || topology.node_of(out.back().front()) != topology.node_of(rank))
      out.emplace_back();
    out.back().push_back(rank);
  }
  return out;
}

// The worst class on a ring through a node's ranks in the order of their numbers.
PathClass worst_class(const Topology& topology, const std::vector<Rank>& ranks) {
  PathClass worst = PathClass::NVL;
  for (std::size_t i = 0; i < ranks.size() && ranks.size() > 1; ++i)
    worst = std::max(worst, topology.rule(ranks[i], ranks[(i + 1) % ranks.size()]).path_class());
  return worst;
}

// NICs of a node with `members` ranks, and the rate of one: ports count once per GPU, a resource
// shared by the node as one NIC for all.
std::pair<int, double> nics_of(const Topology& topology, std::size_t members) {
  const NodeTemplate& node = topology.node();
  const RouteRule& rule = node.rules[to_index(node.rule_between)];
  std::pair<int, double> out{static_cast<int>(members), 0};
  double total = -1;
  for (const Hop& hop : rule.hops) {
    bool port = hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::DestinationIn;
    if (hop.kind == Hop::Kind::Fabric) continue;
    double rate = !port                              ? gb(node.shared[hop.index].bytes_per_s)
                  : hop.kind == Hop::Kind::SourceOut ? gb(node.ports[hop.index].out_bytes_per_s)
                                                     : gb(node.ports[hop.index].in_bytes_per_s);
    int count = port ? static_cast<int>(members) : 1;
    if (total < 0 || count * rate < total) {
      total = count * rate;
      out = {count, rate};
    }
  }
  return out;
}

}  // namespace

Gpus gpus_of(const Topology& topology) {
  if (topology.machine().compute_capability) return {*topology.machine().compute_capability, true};
  double fastest = 0;
  for (const RouteRule& rule : topology.node().rules)
    if (rule.path_class() == PathClass::NVL)
      for (const Hop& hop : rule.hops)
        if (hop.kind == Hop::Kind::SourceOut)
          fastest = std::max(fastest, gb(topology.node().ports[hop.index].out_bytes_per_s));
  return {fastest >= 800                   ? 100
          : fastest >= 380                 ? 90
          : fastest >= 180 || fastest == 0 ? 80
                                           : 70,
          false};
}

double nominal_gb_per_s(double line, PathClass path_class, int compute_capability) {
  switch (path_class) {
    case PathClass::NVL:
    case PathClass::NVB:
      // 20, 20.6 and 40.1 of 25, 25 and 50 GB/s per link.
      return line * (compute_capability >= 100 ? 0.802 : compute_capability >= 90 ? 0.824 : 0.8);
    case PathClass::NET:
      return line * 0.96;  // what PCIe carries to a NIC
    default:
      return line;
  }
}

Graph rings_on_node(double total, int compute_capability) {
  Graph best;
  for (double speed : intra_speeds(compute_capability)) {
    int channels = whole(total / speed);
    if (channels * speed > best.channels * best.intra) best = {channels, speed, speed};
  }
  if (best.channels == 0) return {1, total, total};
  duplicate(best, compute_capability);
  return best;
}

Graph rings_between(int nics, double nic, int per_node, double within, int compute_capability) {
  Graph best;
  for (double speed : inter_speeds(compute_capability)) {
    // A ring passes all GPUs of a node, but leaves one of them over the network.
    int channels = std::min(kMaxFound, nics * whole(nic / speed));
    if (per_node > 1)
      channels = std::min(channels, whole(within / speed * per_node / (per_node - 1)));
    if (channels * speed > best.channels * best.intra) best = {channels, speed, speed};
  }
  if (best.channels == 0) return {1, nics * nic, nics * nic};
  duplicate(best, compute_capability);
  return best;
}

std::optional<Graph> nvls_on_node(int ranks, double port, int compute_capability) {
  std::span<const double> speeds = intra_speeds(compute_capability);
  if (generation_of(compute_capability) < Generation::Hopper || ranks < 2) return std::nullopt;
  for (double speed : speeds)
    if (speed * (ranks + 1) <= port + 1e-9) return Graph{ranks, speed, speeds.front()};
  return std::nullopt;
}

CommunicatorShape communicator_of(const Topology& topology, std::span<const Rank> ranks) {
  RESHARD_CHECK(ranks.size() >= 2, "a communicator of one rank");
  std::vector<std::vector<Rank>> nodes = by_node(topology, ranks);
  const std::vector<Rank>& fullest = *std::max_element(
      nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  auto per_node = static_cast<int>(fullest.size());
  CommunicatorShape out;
  out.ranks = static_cast<int>(ranks.size());
  out.nodes = static_cast<int>(nodes.size());
  out.compute_capability = gpus_of(topology).compute_capability;
  out.cpu = topology.machine().cpu.value_or(Cpu::Intel);

  PathClass within = worst_class(topology, fullest);
  double total = 0;
  if (per_node > 1)
    total = nominal_gb_per_s(narrowest(topology, fullest), within, out.compute_capability);
  if (std::optional<std::int64_t> stated = topology.machine().figure(Figure::RingRate);
      stated && per_node > 1)
    total = std::min(total, gb(*stated));
  out.on_node = total;
  if (out.nodes == 1) {
    out.ring = rings_on_node(total, out.compute_capability);
  } else {
    auto [nics, nic] = nics_of(topology, fullest.size());
    PathClass between = topology.rule(nodes[0][0], nodes[1][0]).path_class();
    out.ring = rings_between(nics, nominal_gb_per_s(nic, between, out.compute_capability), per_node,
                             total, out.compute_capability);
    out.ring.between = PathClass::PXB;  // from a GPU to its NIC
  }
  out.ring.within = within;
  out.tree = out.ring;
  if (topology.machine().nvls && within == PathClass::NVL && per_node > 1) {
    out.nvls = nvls_on_node(per_node, total, out.compute_capability);
    if (out.nvls && out.nodes > 1) out.nvls->inter = out.ring.intra;
  }
  return out;
}

}  // namespace reshard::sim::nccl
