// SPDX-License-Identifier: BSD-3-Clause
// The topology file format (traces/topologies/*.topo): one node and how nodes join, with a count.
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

// One `route` line: for which pairs of devices, and the rule. The first line that matches a pair of
// a node counts.
struct RouteLine {
  enum class Where : std::uint8_t {
    Within,   // any two devices of a node
    Between,  // devices of different nodes
    Pairs,    // the local pairs listed, both ways
    Groups,   // one end in group a, the other in group b, both ways; a == b: both ends in it
    FromTo,   // source in group a, destination in group b
  };
  Where where = Where::Within;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  std::int32_t a = -1, b = -1;  // indices of groups
  RouteRule rule;
  std::int64_t line = 0;  // of the text that it was read from; 0: from none
};

// What a topology file says, before the count is applied.
struct TopologyDescription {
  std::string name;
  std::int32_t devices = 1, nodes = 1;  // per node; nodes
  // What the number behind "name:" replaces: nodes, or devices (then every device is alike), or
  // nothing may be given.
  enum class Counts : std::uint8_t { Nodes, Devices, Nothing };
  Counts counts = Counts::Nothing;
  IndexVector<std::int32_t, Port> ports;
  IndexVector<std::int32_t, SharedResource> shared, fabric;
  IndexVector<std::int32_t, DeviceGroup> groups;
  std::vector<RouteLine> routes;
  Machine machine = {};
  // How it was changed, as it stands behind the count in a topology's name: ",nics=1".
  std::string variant = {};
  // What a reader of another format took for granted, a line each; no part of the text.
  std::vector<std::string> assumed = {};
};

// Throws InputError "FILE:LINE: expected ..., found ...", for every contradiction too: a name given
// twice, an unknown group, a pair of devices without a route, a route line that no pair takes. Work
// and memory are linear in the text and the number of devices, plus a table of at most 1024 x 1024
// device classes.
TopologyDescription parse_topology(std::string_view text, std::string_view file);

// Applies "NAME:count". Throws InputError for a count out of range or where the file takes none.
// The topology is named "NAME:count" wherever a count may be given.
Topology build_topology(const TopologyDescription& description, std::optional<std::int64_t> count);

// The text of a topology; parse_topology reads it back to the same.
std::string to_text(const TopologyDescription& description);

// Classes of devices and their table of rules, from the route lines.
struct RouteTable {
  IndexVector<std::int32_t, RouteRule> rules;                     // one per route line, in order
  IndexVector<std::int32_t, std::int32_t> class_of, rule_within;  // as NodeTemplate
  std::int32_t rule_between = -1;

  std::vector<bool> taken;  // per route line: whether some pair takes it
  // Local devices that no line gives a route.
  std::optional<std::pair<std::int32_t, std::int32_t>> missing;
  bool too_many_classes = false;  // more than kMaxDeviceClasses; nothing else is filled then
};

// Group and device numbers must be in range.
RouteTable make_route_table(const TopologyDescription& description);

}  // namespace reshard
