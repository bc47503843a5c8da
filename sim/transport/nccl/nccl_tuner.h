// SPDX-License-Identifier: BSD-3-Clause
// NCCL's choice of algorithm and protocol for a collective: its own closed-form model, with its own
// constants (nccl_constants.h), for a communicator with known channels (nccl_graph.h).
//
// Each algorithm and protocol has a latency and a rate; an operation of S bytes is predicted to
// take latency + S / rate, and the least such time is chosen. S is what nccl-tests prints: the
// larger of a rank's input and output. Source: ncclTopoTuneModel and ncclTopoGetAlgoTime of NCCL
// 2.30.7. IEEE double, + - * / only, in a fixed order, so that every compiler makes the same
// choice.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/ids.h"
#include "core/topology/machine.h"
#include "core/topology/path_class.h"
#include "sim/transport/nccl/nccl_constants.h"

namespace reshard::sim::nccl {

enum class Function : std::uint8_t { Broadcast, AllGather, ReduceScatter, AllReduce };

// What NCCL's search finds for one pattern: channels, and GB/s per channel within a node and
// between nodes.
struct Graph {
  int channels = 0;
  double intra = 0, inter = 0;
  PathClass within = PathClass::NVL, between = PathClass::PXB;  // the worst used
  double network_us = 0;  // latency stated by the network itself
  friend bool operator==(const Graph&, const Graph&) = default;
};

struct CommunicatorShape {
  int ranks = 2, nodes = 1;
  int compute_capability = 90;  // x 10, the lowest
  Cpu cpu = Cpu::Intel;
  Graph ring, tree;
  std::optional<Graph> nvls;  // if the switches reduce
  // GB/s that all rings on a node can take together; the search uses as much of it as its speed
  // steps allow.
  double on_node = 0;
  int ranks_per_node() const { return ranks / nodes; }
};

struct Belief {
  double latency_us, rate_gb_per_s;  // algorithm bandwidth: S / time, without the latency
};

struct Choice {
  Algorithm algorithm;
  Protocol protocol;
  double time_us;  // as predicted
};

class Tuner {
 public:
  Tuner(const Constants& constants, const CommunicatorShape& communicator)
      : constants_(constants), comm_(communicator) {}

  // None if the combination does not exist or is disabled.
  std::optional<Belief> belief(Function function, Algorithm algorithm, Protocol protocol) const;
  // Predicted time of an operation, with the corrections that depend on its size.
  std::optional<double> time_us(Function function, Algorithm algorithm, Protocol protocol,
                                std::int64_t bytes) const;
  // The choice of least time; ties go to the algorithm, then the protocol, listed first. `only`
  // restricts the choice to one algorithm.
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
