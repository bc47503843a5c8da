// SPDX-License-Identifier: BSD-3-Clause
// Pictures for pages and files: requests, machines, sweeps.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/layout/request.h"
#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/picture/markup.h"
#include "sim/report/sweep_report.h"

namespace reshard::sim {

// A request: the tensor before and after, side by side, with the ranks that hold each part.
//
// Both sides have a box per shard, true to scale, with its ranks. Data of one colour was in one
// shard before, which shows where it goes; if all ranks held the whole tensor before, data of one
// colour is in one shard after. Partial is hatched.
void draw_sharding(Node parent, const Request& request);

// What links carried until `end_ps`, as in Timeline; empty if nothing ran.
struct LinkLoads {
  std::span<const ResourceUse> uses = {};  // by ResourceId
  std::int64_t end_ps = 0;
};

// A machine: devices, the links between them, and the load of each link.
//
// A link is a bar over the GPUs with routes that cross it (node_links.h). The width of a link is
// its capacity; with loads, its colour is its utilisation. All nodes are alike, so only some are
// drawn (with loads, those with the busiest links), and the number of others is shown.
void draw_topology(Node parent, const Topology& topology, const LinkLoads& loads = {});

// A sweep as a matrix: for every pair of layouts, how far one planner is from the bound, on one
// mesh of the report.
//
// The colour is the share of the time that exceeds the bound. Ratios from 1 to 2 thus take half of
// the colours, and a single very slow pair does not make all others look the same.
void draw_matrix(Node parent, const SweepReport& report, std::string_view mesh,
                 std::string_view planner);

}  // namespace reshard::sim
