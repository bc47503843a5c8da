// SPDX-License-Identifier: BSD-3-Clause
// The report on a trace as a table and as JSON (fields: tools/json-schemas.md).
#pragma once

#include <string>

#include "sim/trace/replay.h"

namespace reshard::sim {

// `verbose` adds a row per redistribution and the plan cache.
std::string replay_table(const ReplayReport& report, bool verbose);
// "schema": "reshard.replay/1".
std::string replay_json(const ReplayReport& report);

}  // namespace reshard::sim
