// SPDX-License-Identifier: BSD-3-Clause
// How a node's parts are joined, concluded from routes, and where they stand, for those who draw
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/topology.h"

namespace reshard::sim {

// How a node's parts are joined, concluded from routes, for those who draw it.
//
// A topology says which resources a route crosses, not where these lie. But where one resource
// follows another on a route, the end of the one is the start of the other; and the way back
// crosses the other directions of the same cables, in reverse. So all ends that meet are found as
// joined sets, whatever the resources are called. A resource that both ways cross has no two ends:
// it is itself a place (host memory, a bus), and what it follows is joined to it.

struct Wiring {
  // A resource of every node, or of the fabric.
  struct Link {
    bool fabric;
    std::int32_t index;  // among a node's resources, among the fabric's
    ResourceId in(const Topology& topology, std::int32_t node) const;
  };
  struct Spot {
    enum class Kind : std::uint8_t { Device, Joint, Shared };
    Kind kind;
    bool outside;                   // of nodes; all of them reach it
    std::optional<Link> link = {};  // of a Shared
    // The best of the routes that pass by, not those of a device.
    std::optional<PathClass> path_class = {};
  };
  struct Cable {
    std::int32_t from, to;  // spots
    Link there;
    std::optional<Link> back;
    PathClass path_class;  // the best of the routes that cross it
  };

  std::int32_t devices = 0;  // the first spots; a node's first devices where it has more
  std::vector<Spot> spots;
  std::vector<Cable> cables;
  std::vector<std::pair<std::int32_t, std::int32_t>> touching;  // without a link between them
  std::vector<std::string> idle;                                // resources on no route
};

Wiring wiring_of(const Topology& topology, std::int32_t most_devices);

// Where the spots of a wiring stand in a picture of one node.
//
// Devices stand in a row. Every other spot is a bar above them that spans all that it is joined to
// from below, so that cables run straight up; spots of the NVLink alone are bars below. Bars that
// would overlap stand on different tracks.

struct SpotPlace {
  std::int32_t track = 0;    // 0: the devices; above them from 1, below from -1
  double low = 0, high = 0;  // in columns of devices
  std::int32_t level = 0;    // joints and links to the nearest device
  bool touches_all = false;  // every device touches it, without a link between
  friend bool operator==(const SpotPlace&, const SpotPlace&) = default;
};

// By spot. Those outside stand above all others and span the whole node.
std::vector<SpotPlace> places_of(const Wiring& wiring);

}  // namespace reshard::sim
