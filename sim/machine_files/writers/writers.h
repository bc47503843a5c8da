// SPDX-License-Identifier: BSD-3-Clause
// Machines written for others: NCCL's XML, and DOT for Graphviz. Our own text is core's to_text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/topology/topology_text.h"
#include "sim/machine_files/node_parts.h"

namespace reshard::sim {

// One node, as NCCL_TOPO_FILE takes it. What is read back has the same routes, rates and classes;
// latencies, figures and the number of nodes are not in it. `compute_capability`: of the GPUs,
// where the description does not state it. Throws InputError for a machine of which this cannot be
// said, naming a route that would be another.
std::string to_nccl_xml(const TopologyDescription& description, std::int32_t compute_capability);

// A graph of one node and what leads out of it. Throws InputError above 256 devices.
std::string to_dot(const TopologyDescription& description);

// From routes back to parts, as well as can be concluded; not all routes come from parts.
NodeParts parts_of(const TopologyDescription& description);

// How the routes of `other` differ from those of `one`, if they do: devices, transport, class,
// rate, what a flow is capped at, and which pairs share what. Names of resources and latencies do
// not count; nor does a resource that others on the same routes make needless.
std::optional<std::string> difference(const TopologyDescription& one,
                                      const TopologyDescription& other);

inline constexpr std::int32_t kMaxWrittenDevices = 256;

}  // namespace reshard::sim
