// SPDX-License-Identifier: BSD-3-Clause
// The writers of `replay`; their model is the result of replay().
#pragma once

#include <cstddef>
#include <string>

#include "sim/replay/replay.h"
#include "sim/report/table.h"

namespace reshard::sim {

// "schema": "reshard.replay/1". `verbose` adds the critical path and a row per operation.
std::string replay_json(const ReplayReport& report);
std::string replay_table(const ReplayReport& report, bool verbose, std::size_t width = kTableWidth);
// PyTorch's own warning, or how messages that name no communicator would hang in PyTorch; empty if
// neither applies.
std::string warning_text(const ReplayReport& report);
// The cycle of waits of a finding; empty if it has none.
std::string cycle_table(const TraceFinding& finding, std::size_t width = kTableWidth);

}  // namespace reshard::sim
