// SPDX-License-Identifier: BSD-3-Clause
// The page of a replayed trace: operations where that of a plan has steps.
#pragma once

#include <string>

#include "sim/replay/replay.h"

namespace reshard::sim {

// `report` without findings, with details, its critical path and what links did.
std::string replay_page(const ReplayReport& report, const Topology& topology);

}  // namespace reshard::sim
