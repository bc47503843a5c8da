// SPDX-License-Identifier: BSD-3-Clause
// How full links are over time. Links are many and mostly alike: of every kind ("nic.out") a strip
// shows its fullest link and the mean of all that carried something. Where the two differ, few
// links do what many could.
#pragma once

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

// Into a panel. Of the timeline `work` and `resources` are used.
void draw_links(Node panel, const Timeline& timeline, const Topology& topology);

}  // namespace reshard::sim
