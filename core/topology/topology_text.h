// SPDX-License-Identifier: BSD-3-Clause
// The topology file format (traces/topologies/*.topo): one node and how nodes join, with a count. Documented in traces/topologies/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/topology/topology.h"

namespace reshard {

// What a topology file says, before the count is applied.
struct TopologyDescription {
  std::string name;
  NodeTemplate node;
  std::vector<SharedResource> fabric;
  std::int32_t nodes = 1;
  // What the number behind "name:" multiplies: nodes, or devices of a single node (then every device is alike), or nothing may be given.
  enum class Counts { Nodes, Devices, Nothing } counts = Counts::Nodes;
};

// Throws InputError "FILE:LINE: ...". Never more than linear work in the text.
TopologyDescription parse_topology(std::string_view text, std::string_view file);

// Applies "NAME:count". Throws InputError for a count out of range or where the file takes none.
Topology build_topology(const TopologyDescription& description, std::optional<std::int64_t> count);

// The text of a topology; parse_topology reads it back to the same.
std::string to_text(const TopologyDescription& description);

}  // namespace reshard
