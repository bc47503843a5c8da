// SPDX-License-Identifier: BSD-3-Clause
// The writers of `topo show`.
#pragma once

#include <cstddef>
#include <string>

#include "core/topology/topology.h"
#include "sim/report/table.h"

namespace reshard::sim {

// Devices, links, groups, and the route of each pair of devices of a node. "schema":
// "reshard.topology/1".
std::string topology_json(const Topology& topology);
std::string topology_table(const Topology& topology, std::size_t width = kTableWidth);

}  // namespace reshard::sim
