// SPDX-License-Identifier: BSD-3-Clause
// NCCL's choice of algorithm and protocol for a collective: its own closed-form model, with its own
// constants (nccl_constants.h), of a communicator whose channels are known (nccl_graph.h).
//
// For each algorithm and protocol a latency and a rate; an operation of S bytes is believed to take
// latency + S / rate, and the least such time is chosen. S is what nccl-tests prints: the largest
// of what a rank puts in and what it gets out. Source: ncclTopoTuneModel and ncclTopoGetAlgoTime of
// NCCL 2.30.7. IEEE double, + - * / only, in a fixed order, so that every compiler chooses the
// same.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.h"
#include "core/topology/machine.h"
#include "core/topology/path_class.h"
#include "sim/transport/nccl/nccl_constants.h"

namespace reshard::sim::nccl {

enum class Function : std::uint8_t { Broadcast, AllGather, ReduceScatter, AllReduce };

// What NCCL's search found for one pattern: channels, and per channel GB/s within a node and
// between nodes.
struct Graph {
  int channels = 0;
  double intra = 0, inter = 0;
  PathClass within = PathClass::NVL, between = PathClass::PXB;  // the worst used
  double network_us = 0;  // latency that the network itself states
  friend bool operator==(const Graph&, const Graph&) = default;
};

struct CommunicatorShape {
  int ranks = 2, nodes = 1;
  int compute_capability = 90;  // x 10, the lowest
  Cpu cpu = Cpu::Intel;
  Graph ring, tree;
  std::optional<Graph> nvls;  // where the switches reduce
  // GB/s that all rings on a node may take together; the search takes of it what its steps allow.
  double on_node = 0;
  int ranks_per_node() const { return ranks / nodes; }
};

struct Belief {
  double latency_us, rate_gb_per_s;  // algorithm bandwidth: S / time without the latency
};

struct Choice {
  Algorithm algorithm;
  Protocol protocol;
  double time_us;  // as believed
};

class Tuner {
 public:
  Tuner(const Constants& constants, const CommunicatorShape& communicator)
      : constants_(constants), comm_(communicator) {}

  // None where the combination does not exist or is switched off.
  std::optional<Belief> belief(Function function, Algorithm algorithm, Protocol protocol) const;
  // What an operation is believed to take, with the corrections that depend on its size.
  std::optional<double> time_us(Function function, Algorithm algorithm, Protocol protocol,
                                std::int64_t bytes) const;
  // The least time; ties: the algorithm, then the protocol listed first. `only`: none other.
  Choice choose(Function function, std::int64_t bytes,
                std::optional<Algorithm> only = std::nullopt) const;

 private:
  bool exists(Function function, Algorithm algorithm, Protocol protocol) const;
  const Graph& graph(Algorithm algorithm) const;
  double latency_us(Function function, Algorithm algorithm, Protocol protocol) const;
  double ring_rate(Protocol protocol) const;
  double tree_rate(Protocol protocol) const;
  double nvls_rate(Function function, Algorithm algorithm) const;
  int steps(Function function) const;
  std::size_t nodes_index() const { return comm_.nodes <= 2 ? to_index(comm_.nodes - 1) : 2; }

  const Constants& constants_;
  CommunicatorShape comm_;
};

}  // namespace reshard::sim::nccl
