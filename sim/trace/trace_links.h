// SPDX-License-Identifier: BSD-3-Clause
// What the lines of a trace say about each other: names in `after`, and sends that meet receives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace reshard::sim {

// `after` as written, by operation.
using AfterIds = std::vector<std::vector<std::string>>;

// Fills TraceOperation::after. Throws InputError for an id given twice or not at all, and for a
// cycle, naming its lines.
void resolve_after(Trace& trace, const AfterIds& ids);

// Pairs the n-th send with the n-th receive of each (source, destination, tag), in line order; what
// is left over or differs in bytes becomes a finding.
void match_messages(Trace& trace);

}  // namespace reshard::sim
