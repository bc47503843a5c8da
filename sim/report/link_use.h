// SPDX-License-Identifier: BSD-3-Clause
// Which links a timeline used, and how much: the busiest resources, and the bytes per class of
// route.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/timeline.h"
#include "core/topology/topology.h"

namespace reshard::sim {

struct LinkUse {
  std::string name;
  std::int64_t bytes, busy_ps;
  std::int64_t bytes_per_s;  // capacity
};

// Resources that carried bytes, by bytes over capacity (the time they would need alone),
// descending, then by id; at most `limit`.
std::vector<LinkUse> busiest_links(const Timeline& timeline, const Topology& topology,
                                   std::size_t limit);

// bytes / (capacity x end), in ten-thousandths, rounded half up; 0 at end 0.
std::int64_t utilisation_e4(const LinkUse& link, std::int64_t end_ps);

struct ClassBytes {
  Transport transport;
  std::int64_t bytes;
};

// Bytes of the timeline's flows by the transport of their route, in the order of Transport; classes
// without bytes are left out.
std::vector<ClassBytes> bytes_by_class(const Timeline& timeline, const Topology& topology);

}  // namespace reshard::sim
