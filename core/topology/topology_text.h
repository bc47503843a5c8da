// SPDX-License-Identifier: BSD-3-Clause
// The topology file format (traces/topologies/*.topo): one node, how nodes are joined, and a count.
// Documented in traces/topologies/README.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/topology/topology.h"

namespace reshard {

// One `route` line: the pairs of devices that it applies to, and the rule. Within a node the first
// line that matches a pair applies.
struct RouteLine {
  enum class Where : std::uint8_t {
    Within,   // any two devices of a node
    Between,  // devices of different nodes
    Pairs,    // the listed pairs of a node, in both directions
    Groups,   // one end in group a, the other in group b, either way; a == b: both in it
    FromTo,   // source in group a, destination in group b
  };
  Where where = Where::Within;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  std::int32_t a = -1, b = -1;  // group indices
  RouteRule rule;
  std::int64_t line = 0;  // number of the line that it was read from; 0: none
};

// The content of a topology file, before a count is applied.
struct TopologyDescription {
  std::string name;
  std::int32_t devices = 1, nodes = 1;  // devices per node; nodes
  // What the number after "name:" replaces: the nodes, or the devices (then all devices are alike);
  // with Nothing, no number is allowed.
  enum class Counts : std::uint8_t { Nodes, Devices, Nothing };
  Counts counts = Counts::Nothing;
  IndexVector<std::int32_t, Port> ports;
  IndexVector<std::int32_t, SharedResource> shared, fabric;
  IndexVector<std::int32_t, DeviceGroup> groups;
  std::vector<RouteLine> routes;
  Machine machine = {};
  // A modification, as appended to the count in the topology's name: ",nics=1".
  std::string variant = {};
  // Assumptions of a reader of another format, one per line; not part of the text.
  std::vector<std::string> assumed = {};
};

// Throws InputError "FILE:LINE: expected ..., found ...", also for contradictions: a name given
// twice, an unknown group, a pair of devices without a route, a route line that applies to no pair.
// Time and memory are linear in the text and the number of devices, plus a table of at most 1024 x
// 1024 device classes.
TopologyDescription parse_topology(std::string_view text, std::string_view file);

// Applies "NAME:count". Throws InputError for a count out of range or where the file allows none.
// The topology is named "NAME:count" if the file allows a count.
Topology build_topology(const TopologyDescription& description, std::optional<std::int64_t> count);

// The text of a description; parse_topology reads it back unchanged.
std::string to_text(const TopologyDescription& description);

// Classes of devices and their rules, derived from the route lines.
struct RouteTable {
  IndexVector<std::int32_t, RouteRule> rules;                     // one per route line, in order
  IndexVector<std::int32_t, std::int32_t> class_of, rule_within;  // as NodeTemplate
  std::int32_t rule_between = -1;

  std::vector<bool> taken;  // by route line: whether it applies to some pair
  // Two devices of a node that no line gives a route.
  std::optional<std::pair<std::int32_t, std::int32_t>> missing;
  bool too_many_classes = false;  // more than kMaxDeviceClasses; nothing else is set then
};

// Group and device numbers must be in range.
RouteTable make_route_table(const TopologyDescription& description);

}  // namespace reshard
