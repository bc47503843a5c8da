// SPDX-License-Identifier: BSD-3-Clause
// A communicator on a topology: what NCCL's search for channels would find for some ranks.
//
// The search itself is not repeated: for rings its outcome follows from how much can cross the
// narrowest cut between the ranks (core/bounds' sets), in steps of the speeds that the search
// tries. Source: src/graph/search.cc and topo.h of NCCL 2.30.7.
#pragma once

#include <span>

#include "core/topology/topology.h"
#include "sim/transport/nccl/nccl_tuner.h"

namespace reshard::sim::nccl {

// What is known of a machine's GPUs and links, stated or concluded.
struct Gpus {
  int compute_capability;
  bool stated;  // else concluded from the rate of the fastest links
};
Gpus gpus_of(const Topology& topology);

// GB/s that NCCL counts for a link whose line rate is stated.
double nominal_gb_per_s(double line_gb_per_s, PathClass path_class, int compute_capability);

// `ranks`: at least two, all with a device.
CommunicatorShape communicator_of(const Topology& topology, std::span<const Rank> ranks);

// The search's steps, apart: for rings on one node over `total` GB/s; for rings between nodes with
// `nics` of `nic` GB/s each, that every GPU of `per_node` forwards within `within` GB/s; for
// switches that reduce, on one node of `ranks` ports of `port` GB/s.
Graph rings_on_node(double total, int compute_capability);
Graph rings_between(int nics, double nic, int per_node, double within, int compute_capability);
std::optional<Graph> nvls_on_node(int ranks, double port, int compute_capability);

}  // namespace reshard::sim::nccl
