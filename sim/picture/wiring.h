// SPDX-License-Identifier: BSD-3-Clause
// How a node's parts are joined, concluded from routes, for those who draw it.
//
// A topology says which resources a route crosses, not where these lie. But where one resource
// follows another on a route, the end of the one is the start of the other; and the way back
// crosses the other directions of the same cables, in reverse. So all ends that meet are found as
// joined sets, whatever the resources are called. A resource that both ways cross has no two ends:
// it is itself a place (host memory, a bus), and what it follows is joined to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/topology/topology.h"

namespace reshard::sim {

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

}  // namespace reshard::sim
