// SPDX-License-Identifier: BSD-3-Clause
// What was decided for the calls of a trace, as part of its report.
#pragma once

#include <string>

#include "sim/dispatch/dispatch.h"
#include "sim/report/json.h"

namespace reshard::sim {

// Null where it is infinite.
Json cost_json(double cost_us);
// One text a tensor, null for an absent one.
Json placements_json(const PlacedTensors& tensors);

// Adds `calls`, `redistributions`, `dispatch`, `values`, `collectives`, `collectives_issued`,
// `operators`, `moves` and `regret`.
void add_dispatch(const DispatchReport& report, Json& out);
// Counts, bytes and times by module and operator and by collective; the regret; with `verbose`
// every call and what moves for it, in the words of PyTorch's DebugMode.
std::string dispatch_tables(const DispatchReport& report, bool verbose, std::size_t width);

}  // namespace reshard::sim
