// SPDX-License-Identifier: BSD-3-Clause
#include "sim/transport/nccl/nccl_tuner.h"

#include <algorithm>
#include <bit>

#include "core/base/errors.h"

namespace reshard::sim::nccl {
namespace {

// floor(log2(value)) for value >= 1; 0 for 0.
int log2_floor(std::uint64_t value) {
  return value == 0 ? 0 : static_cast<int>(std::bit_width(value)) - 1;
}

}  // namespace

int Tuner::steps(Function function) const {
  switch (function) {
    case Function::AllReduce:
      return 2 * (comm_.ranks - 1);
    case Function::AllGather:
    case Function::ReduceScatter:
      return comm_.ranks - 1;
    case Function::Broadcast:
      return comm_.ranks;
  }
  return 0;
}

const Graph& Tuner::graph(Algorithm algorithm) const {
  switch (algorithm) {
    case Algorithm::Ring:
    case Algorithm::Pat:
      return comm_.ring;
    case Algorithm::Nvls:
    case Algorithm::NvlsTree:
      return *comm_.nvls;
    default:
      return comm_.tree;
  }
}

// CollNet is disabled without a plugin, PAT unless every node has one rank.
bool Tuner::exists(Function function, Algorithm algorithm, Protocol protocol) const {
  bool gathers = function == Function::AllGather || function == Function::ReduceScatter,
       reduces = function == Function::AllReduce, simple = protocol == Protocol::Simple,
       one_node = comm_.nodes == 1;
  switch (algorithm) {
    case Algorithm::Ring:
      break;
    case Algorithm::Tree:
      if (!reduces) return false;
      break;
    case Algorithm::Pat:
      return gathers && simple && !one_node && comm_.ranks == comm_.nodes;
    case Algorithm::Nvls:
      return (gathers || reduces) && simple && one_node && comm_.nvls && comm_.nvls->channels >= 2;
    case Algorithm::NvlsTree:
      return reduces && simple && !one_node && comm_.nvls && comm_.nvls->channels >= 2;
    default:
      return false;
  }
  if (protocol != Protocol::LL128) return true;
  const Graph& found = graph(algorithm);
  PathClass between = comm_.compute_capability >= 90 ? PathClass::PXN : PathClass::PXB;
  return comm_.compute_capability >= 70 && found.within <= PathClass::NVB &&
         (one_node || found.between <= between);
}

double Tuner::ring_rate(Protocol protocol) const {
  const Graph& ring = comm_.ring;
  double bus = ring.channels * (comm_.nodes <= 2 ? ring.intra : ring.inter);
  auto generation = to_index(generation_of(comm_.compute_capability));
  // Between nodes, CPUs copy the data of the low-latency protocol.
  auto ll = comm_.nodes == 1 ? generation : to_index(comm_.cpu == Cpu::Amd ? 1 : 0);
  switch (protocol) {
    case Protocol::LL:
      return std::min(constants_.ll_total[ll][nodes_index()], 0.5 * bus);
    case Protocol::LL128:
      return std::min(0.92 * bus, ring.channels * constants_.ring_ll128[generation][nodes_index()]);
    default:
      return bus;
  }
}

double Tuner::tree_rate(Protocol protocol) const {
  const Graph& tree = comm_.tree;
  auto generation = to_index(generation_of(comm_.compute_capability));
  double bus = std::min(0.92 * (tree.channels * (comm_.nodes <= 2 ? tree.intra : tree.inter)),
                        tree.channels * constants_.tree[generation][nodes_index()]);
  auto ll = comm_.nodes == 1 ? generation : to_index(comm_.cpu == Cpu::Amd ? 1 : 0);
  switch (protocol) {
    case Protocol::LL:
      return std::min(bus / 3.8, constants_.ll_total[ll][nodes_index()]);
    case Protocol::LL128:
      return std::min(bus * (comm_.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                      tree.channels * constants_.tree_ll128[generation][nodes_index()]);
    default:
      return bus;
  }
}

double Tuner::nvls_rate(Function function, Algorithm algorithm) const {
  const Graph& nvls = *comm_.nvls;
  auto generation = to_index(generation_of(comm_.compute_capability));
  double intra = nvls.intra * constants_.nvls_efficiency[generation] * (nvls.channels - 1) /
                 nvls.channels,
         inter = nvls.inter;
  if (function == Function::AllReduce)
    intra *= 2;
  else
    intra = intra * (comm_.ranks_per_node() - 1) / comm_.ranks_per_node();
  bool tree = algorithm == Algorithm::NvlsTree;
  if (tree && comm_.nodes <= 2) inter *= 2;
  double rate = std::min(intra, inter);
  if (tree) rate = std::min(rate, constants_.nvls_tree[generation][nodes_index()]);
  return rate * nvls.channels;
}

double Tuner::latency_us(Function function, Algorithm algorithm, Protocol protocol) const {
  auto a = to_index(algorithm), p = to_index(protocol);
  const Graph& found = graph(algorithm);
  Hardware within = found.within <= PathClass::NVL ? Hardware::NvLink : Hardware::Pci;
  double base = constants_.base_us[a][p], intra = constants_.step_us[to_index(within)][a][p];
  // A receiver flushes what arrived in the Simple protocol.
  double inter = constants_.step_us[to_index(Hardware::Net)][a][p] +
                 found.network_us * (protocol == Protocol::Simple ? 2 : 1);
  int nodes = comm_.nodes, log_nodes = log2_floor(static_cast<std::uint64_t>(nodes));
  switch (algorithm) {
    case Algorithm::Ring: {
      if (function == Function::Broadcast) return base + (nodes == 1 ? intra : inter);
      int between = (function == Function::AllReduce ? 2 : 1) * (nodes - 1);
      double post = comm_.cpu == Cpu::Amd ? 2.0 : 1.0;
      if (protocol == Protocol::Simple) post *= 3;
      if (nodes > 1) intra = std::max(intra, post);
      return base + (steps(function) - between) * intra + between * inter;
    }
    case Algorithm::Tree:
      return base + 2 * ((comm_.ranks_per_node() - 1) * intra + log_nodes * inter);
    case Algorithm::Nvls:
      return intra + (nodes > 1 ? inter : 0);
    case Algorithm::NvlsTree:
      return intra + 2 * log_nodes * inter;
    case Algorithm::Pat:
      return base + log_nodes * (inter / 3.5) + 2.8 * comm_.ranks;
    default:
      return base;
  }
}

std::optional<Belief> Tuner::belief(Function function, Algorithm algorithm,
                                    Protocol protocol) const {
  if (!exists(function, algorithm, protocol)) return std::nullopt;
  // Converts the rate of the links to algorithm bandwidth.
  double ring_share = static_cast<double>(comm_.ranks) / steps(function), rate = 0;
  bool gathers = function == Function::AllGather || function == Function::ReduceScatter;
  switch (algorithm) {
    case Algorithm::Ring:
      rate = ring_rate(protocol) * ring_share;
      break;
    case Algorithm::Pat:
      rate = ring_rate(protocol) * 0.75;
      break;
    case Algorithm::Nvls:
    case Algorithm::NvlsTree:
      rate = nvls_rate(function, algorithm) * (gathers ? 1 : ring_share);
      break;
    default:
      rate = tree_rate(protocol) * 0.5;
  }
  if (rate <= 0) return std::nullopt;
  return Belief{latency_us(function, algorithm, protocol), rate};
}

std::optional<double> Tuner::time_us(Function function, Algorithm algorithm, Protocol protocol,
                                     std::int64_t bytes) const {
  std::optional<Belief> known = belief(function, algorithm, protocol);
  if (!known) return std::nullopt;
  auto [latency, rate] = *known;
  if (algorithm == Algorithm::Tree) {
    const auto& share = constants_.tree_share[to_index(protocol)];
    int size = log2_floor(static_cast<std::uint64_t>(bytes) / 64);
    if (size < static_cast<int>(share.size())) rate *= share[to_index(size)];
  }
  // A correction for long rings.
  if (algorithm == Algorithm::Ring && protocol == Protocol::Simple && comm_.nodes > 1 &&
      function == Function::AllReduce && bytes / comm_.ring.channels / comm_.ranks >= 64)
    latency *= comm_.compute_capability < 80 ? 1.9 : 1.4;
  return latency + static_cast<double>(bytes) / (1000 * rate);
}

Choice Tuner::choose(Function function, std::int64_t bytes, std::optional<Algorithm> only) const {
  std::optional<Choice> best;
  for (int a = 0; a < kAlgorithms; ++a)
    for (int p = 0; p < kProtocols; ++p) {
      auto algorithm = static_cast<Algorithm>(a);
      auto protocol = static_cast<Protocol>(p);
      if (only && algorithm != *only) continue;
      std::optional<double> time = time_us(function, algorithm, protocol, bytes);
      if (time && (!best || *time < best->time_us)) best = Choice{algorithm, protocol, *time};
    }
  // A ring always exists.
  if (!best) return choose(function, bytes, Algorithm::Ring);
  return *best;
}

}  // namespace reshard::sim::nccl
