// SPDX-License-Identifier: BSD-3-Clause
// The wiring of a node, derived from its routes, and the positions of its parts in a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/topology.h"

namespace reshard::sim {

// How a node's parts are connected, derived from routes.
//
// A topology lists the resources that a route crosses, not their positions. But if one resource
// follows another on a route, the end of the one is the start of the other; and the reverse route
// crosses the other directions of the same cables in reverse order. All ends that meet are thus
// found as disjoint sets, whatever the names of the resources. A resource that both directions
// cross does not have two ends: it is itself a place (host memory, a bus), connected to its
// neighbours on the route.
struct Wiring {
  // A resource of every node, or of the fabric.
  struct Link {
    bool fabric;
    std::int32_t index;  // among the resources of a node, or of the fabric
    ResourceId in(const Topology& topology, std::int32_t node) const;
  };
  struct Spot {
    enum class Kind : std::uint8_t { Device, Joint, Shared };
    Kind kind;
    bool outside;                   // outside the nodes; all of them reach it
    std::optional<Link> link = {};  // for Shared
    // The best class of the routes that pass it; none for devices.
    std::optional<PathClass> path_class = {};
  };
  struct Cable {
    std::int32_t from, to;  // spots
    Link there;
    std::optional<Link> back;
    PathClass path_class;  // the best class of the routes that cross it
  };

  std::int32_t devices = 0;  // the first spots: at most `most_devices` devices of the node
  std::vector<Spot> spots;
  std::vector<Cable> cables;
  std::vector<std::pair<std::int32_t, std::int32_t>> touching;  // spots with no link between them
  std::vector<std::string> idle;                                // resources on no route
};

Wiring wiring_of(const Topology& topology, std::int32_t most_devices);

// The position of a spot in the picture of a node.
//
// Devices are in a row. Every other spot is a bar above them that spans everything connected to it
// from below, so that cables run straight up; joints of NVLink with devices only are bars below.
// Bars that would overlap are on different tracks.
struct SpotPlace {
  std::int32_t track = 0;    // 0: the devices; above them from 1, below from -1
  double low = 0, high = 0;  // in columns of devices
  std::int32_t level = 0;    // number of connections to the nearest device
  bool touches_all = false;  // every device touches it, with no link between
  friend bool operator==(const SpotPlace&, const SpotPlace&) = default;
};

// By spot. Outside spots are above all others and span the whole node.
std::vector<SpotPlace> places_of(const Wiring& wiring);

}  // namespace reshard::sim
