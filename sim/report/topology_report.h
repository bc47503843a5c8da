// SPDX-License-Identifier: BSD-3-Clause
// A topology for people and for programs: devices, links, groups, and which route joins which pair
// of devices of a node.
#pragma once

#include <string>
#include <vector>

#include "core/topology/topology.h"

namespace reshard::sim {

struct TopologySummary {
  std::string name, summary;
};

std::string topology_list_table(const std::vector<TopologySummary>& rows);
// "schema": "reshard.topologies/1".
std::string topology_list_json(const std::vector<TopologySummary>& rows);

std::string topology_table(const Topology& topology);
// "schema": "reshard.topology/1".
std::string topology_json(const Topology& topology);

}  // namespace reshard::sim
