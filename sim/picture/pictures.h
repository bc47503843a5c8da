// SPDX-License-Identifier: BSD-3-Clause
// Pictures that pages and files show: requests, machines, sweeps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/layout/request.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/picture/markup.h"
#include "sim/report/report.h"

namespace reshard::sim {

// A request as a picture: the tensor before and after, side by side, and whose each part is.
//
// Both sides have a box per shard, true to size, with the ranks that hold it. Colour is data: what
// has one colour lay in one shard before, so that one sees where it goes; where it was whole on
// all ranks before, what has one colour is one shard after. Partial is hatched.
void draw_sharding(Node parent, const Request& request);

// A machine as a picture: devices, what joins them, and how much each link carries.
//
// A node is drawn as its routes say that it is wired (wiring.h); a link is as wide as its capacity,
// and as bright as it was used where loads are given. The first nodes are drawn in full, those of
// the most used links where it is known; all nodes are alike, so that the others are counted.

// What links carried until `end_ps`, as Timeline has it; none where nothing was run.
struct LinkLoads {
  std::span<const ResourceUse> uses = {};  // by ResourceId
  std::int64_t end_ps = 0;
};

void draw_topology(Node parent, const Topology& topology, const LinkLoads& loads = {});

// A sweep as a matrix: from every layout to every other, how far one planner is from the bound.
//
// Colour is the part of the time that is above the bound, from none at the bound: so 1 to 2 takes
// half of the colours, and one pair that takes very long does not make all others look alike.
// Of the rows of this mesh and planner, which the report has.
void draw_matrix(Node parent, const SweepReport& report, std::string_view mesh,
                 std::string_view planner);

}  // namespace reshard::sim
