// SPDX-License-Identifier: BSD-3-Clause
// The links of a node, and the GPUs with routes that cross each. All nodes are alike, so those of
// the first are enough.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology/topology.h"

namespace reshard::sim {

struct NodeLinks {
  // A resource of every node, or of the fabric.
  struct Link {
    bool fabric;
    std::int32_t index;                 // among the resources of a node, or of the fabric
    std::vector<std::int32_t> devices;  // of the node, ascending
    PathClass path_class;               // the best class of these routes
    ResourceId in(const Topology& topology, std::int32_t node) const;
  };
  // GPUs with connected ports, through a switch or by a cable: routes between them cross nothing
  // else.
  struct Meeting {
    std::vector<std::int32_t> devices;
    PathClass path_class;
  };
  std::int32_t devices = 0;       // looked at: the first ones of the node, at most `most_devices`
  std::vector<Link> links;        // in the order of resources
  std::vector<Meeting> meetings;  // by class
  std::vector<std::string> idle;  // resources on no route; empty if some devices are not looked at
};

NodeLinks links_of(const Topology& topology, std::int32_t most_devices);

// Bars side by side, as they are drawn above the row of GPUs.
struct LinkRow {
  enum class Of : std::uint8_t { Ports, Meetings, Shared };
  Of of;              // Ports: one bar for each GPU
  std::string label;  // "nvlink.out, NVL, 450 GB/s": what all bars of the row have in common
  std::vector<std::size_t> bars;  // indices of links, or of meetings
};
// The rows of the links inside a node, from the GPUs upwards: the best class first, then what fewer
// GPUs share. Bars of a row do not overlap, where each spans all columns from its first GPU to its
// last.
std::vector<LinkRow> rows_of(const Topology& topology, const NodeLinks& links);

// "450 GB/s".
std::string short_rate_text(std::int64_t bytes_per_s);

}  // namespace reshard::sim
