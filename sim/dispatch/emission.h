// SPDX-License-Identifier: BSD-3-Clause
// Turns the lines of a trace on named tensors into operations: a redistribution for every input
// that moves, the operator's own collectives, and its duration.
#pragma once

#include <vector>

#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/sharing/sharing.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// Replaces the trace's operations on named tensors by those of `calls`, which has one entry for
// each line except tensor declarations, in order, and stores the operations in `calls`. `prefetch`:
// redistributions of values that no call produces start this many calls before the call that needs
// them, on a separate stream. Throws InputError for more operations than a trace may have.
void emit(Trace& trace, std::vector<DispatchedCall>& calls, const Sharing& sharing,
          std::int64_t prefetch);

}  // namespace reshard::sim
