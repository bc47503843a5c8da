// SPDX-License-Identifier: BSD-3-Clause
// Variants of a topology spec: the same nodes on another network,
// "dgx-h100:8,nics=2,oversubscription=4", and the GPU for a file that does not name it,
// "ndv5-topo.xml,gpu=h100".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/topology/topology_text.h"
#include "sim/machine_files/known_parts.h"

namespace reshard::sim {

struct NetworkVariant {
  // Per node; if fewer than before, all GPUs share them, and a flow uses one of them.
  std::optional<std::int64_t> nics;
  // For a fat tree, in millionths, from 1: the rate that nodes can send divided by the rate of the
  // uplinks of their switches. Each node has its own part of the uplinks.
  std::optional<std::int64_t> oversubscription;
  std::optional<UsersGpu> gpu;
};

// Removes ",nics=2,oversubscription=4" from the end of a spec. Throws InputError for a malformed
// number and for a key given twice.
NetworkVariant take_network_variant(std::string_view& spec);

// Throws InputError if no route joins nodes, if that route crosses no NIC, or if there are fewer
// NICs than `nics`. The number of NICs that a node shares is derived from the cap of
// `route between`.
void change_network(TopologyDescription& description, const NetworkVariant& variant);

}  // namespace reshard::sim
