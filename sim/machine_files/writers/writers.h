// SPDX-License-Identifier: BSD-3-Clause
// Writers of machine descriptions for other tools: NCCL's XML, and DOT for Graphviz. Our own text
// is written by to_text in core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/topology/topology_text.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {

// One node, as NCCL_TOPO_FILE expects it. Reading it back gives the same routes, rates and classes;
// latencies, figures and the number of nodes are lost. `compute_capability` is that of the GPUs,
// used if the description does not state it. Throws InputError for a machine that this format
// cannot express, naming a route that would differ.
std::string to_nccl_xml(const TopologyDescription& description, std::int32_t compute_capability);

// A graph of one node and its links to the network. Throws InputError above 256 devices.
std::string to_dot(const TopologyDescription& description);

// Derives parts from routes as well as possible; not all routes come from parts.
NodeParts parts_of(const TopologyDescription& description);

// The first difference between the routes of `other` and `one`, if any: devices, transport, class,
// rate, cap of a flow, and which pairs share what. Names of resources and latencies do not count,
// nor do resources made redundant by others on the same routes.
std::optional<std::string> difference(const TopologyDescription& one,
                                      const TopologyDescription& other);

inline constexpr std::int32_t kMaxWrittenDevices = 256;

}  // namespace reshard::sim
