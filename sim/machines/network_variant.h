// SPDX-License-Identifier: BSD-3-Clause
// The same nodes on another network: "dgx-h100:8,nics=2,oversubscription=4"; and, of a file that
// does not say it, the GPU: "ndv5-topo.xml,gpu=h100".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/topology/topology_text.h"
#include "sim/machine_files/known_parts.h"

namespace reshard::sim {

struct NetworkVariant {
  // Per node; fewer than before are shared by all its GPUs, and a flow has one of them.
  std::optional<std::int64_t> nics;
  // Of a fat tree, in millionths, from 1: what leaves the switches below the tree is so many times
  // less than what their nodes can send. Each node has its part of the uplinks.
  std::optional<std::int64_t> oversubscription;
  std::optional<UsersGpu> gpu;
};

// Takes ",nics=2,oversubscription=4" off the end of a spec. Throws InputError for a number that is
// none and for a key given twice.
NetworkVariant take_network_variant(std::string_view& spec);

// Throws InputError where nodes do not join, where there are fewer NICs already, and where it is
// not known how many there are: several that a node shares are told by the cap of `route between`.
void change_network(TopologyDescription& description, const NetworkVariant& variant);

}  // namespace reshard::sim
