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

// bytes / (capacity x end) in units of 1 / `scale` (at most 10^6), rounded half up; 0 at end 0.
std::int64_t utilisation(const LinkUse& link, std::int64_t end_ps, std::int64_t scale);

struct ClassUse {
  Transport transport;
  std::int64_t bytes, flows;
};

// The timeline's flows by the transport of their route, in the order of Transport; classes without
// flows are left out.
std::vector<ClassUse> use_by_class(const Timeline& timeline, const Topology& topology);

}  // namespace reshard::sim
