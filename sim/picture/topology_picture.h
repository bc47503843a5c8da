// SPDX-License-Identifier: BSD-3-Clause
// A machine as a picture: devices, what joins them, and how much each link carries.
//
// A node is drawn as its routes say that it is wired (wiring.h); a link is as wide as its capacity,
// and as bright as it was used where loads are given. The first nodes are drawn in full, those of
// the most used links where it is known; all nodes are alike, so that the others are counted.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

// What links carried until `end_ps`, as Timeline has it; none where nothing was run.
struct LinkLoads {
  std::span<const ResourceUse> uses = {};  // by ResourceId
  std::int64_t end_ps = 0;
};

void draw_topology(Node parent, const Topology& topology, const LinkLoads& loads = {});

}  // namespace reshard::sim
