// SPDX-License-Identifier: BSD-3-Clause
// The part of a replay's report about operator calls: what was decided for each of them.
#pragma once

#include <string>

#include "sim/dispatch/dispatch.h"
#include "sim/report/json.h"

namespace reshard::sim {

// Null if infinite.
Json cost_json(double cost_us);
// One text per tensor, null for an absent one.
Json placements_json(const PlacedTensors& tensors);

// Adds `calls`, `redistributions`, `dispatch`, `values`, `lost_writes`, `taken_as_recorded`,
// `collectives`, `collectives_issued`, `operators`, `moves` and `regret`.
void add_dispatch(const DispatchReport& report, Json& out);
// Counts, bytes and times by module and operator and by collective; the regret; with `verbose`
// every call and its redistributions, in the format of PyTorch's DebugMode.
std::string dispatch_tables(const DispatchReport& report, bool verbose, std::size_t width);

}  // namespace reshard::sim
