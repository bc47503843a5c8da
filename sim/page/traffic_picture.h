// SPDX-License-Identifier: BSD-3-Clause
// Who sent how much to whom: a square of senders by receivers, the darker the more, with what each
// sends and receives in all along its sides. Many ranks are taken together, whole nodes if that is
// enough.
#pragma once

#include <span>

#include "core/plan/executor.h"
#include "core/topology/topology.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

// Into a panel. `flows` between ranks that have devices of the topology.
void draw_traffic(Node panel, std::span<const FlowSpan> flows, const Topology& topology);

}  // namespace reshard::sim
