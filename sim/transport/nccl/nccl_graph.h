// SPDX-License-Identifier: BSD-3-Clause
// The channels of a communicator on a topology, as NCCL's search would find them.
//
// The search itself is not repeated: for rings its outcome follows from the capacity of the
// narrowest cut between the ranks (the sets of core/bounds), in steps of the speeds that the search
// tries. Source: src/graph/search.cc and topo.h of NCCL 2.30.7.
#pragma once

#include <span>

#include "core/topology/topology.h"
#include "sim/transport/nccl/nccl_tuner.h"

namespace reshard::sim::nccl {

// The class of a machine's GPUs.
struct Gpus {
  int compute_capability;
  bool stated;  // otherwise derived from the rate of the fastest links
};
Gpus gpus_of(const Topology& topology);

// GB/s that NCCL assumes for a link of this line rate.
double nominal_gb_per_s(double line_gb_per_s, PathClass path_class, int compute_capability);

// `ranks`: at least two, all with a device.
CommunicatorShape communicator_of(const Topology& topology, std::span<const Rank> ranks);

// The separate steps of the search: rings on one node over `total` GB/s; rings between nodes with
// `nics` NICs of `nic` GB/s each, where each GPU of `per_node` forwards within `within` GB/s; and
// switches that reduce, on one node of `ranks` ports of `port` GB/s.
Graph rings_on_node(double total, int compute_capability);
Graph rings_between(int nics, double nic, int per_node, double within, int compute_capability);
std::optional<Graph> nvls_on_node(int ranks, double port, int compute_capability);

}  // namespace reshard::sim::nccl
