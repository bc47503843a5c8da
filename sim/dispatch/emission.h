// SPDX-License-Identifier: BSD-3-Clause
// The lines of a trace on named tensors become operations: a redistribution for every input that
// moves, the operator's own collectives, the time that it takes.
#pragma once

#include <vector>

#include "sim/dispatch/dispatched.h"
#include "sim/dispatch/sharing/sharing.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// Replaces the trace's operations on named tensors by what `calls`, one for each line but those of
// tensors in their order, come to, and notes the operations in them. `prefetch`: what brings values
// that no call has made starts so many calls before the call that needs it, on a stream of its own.
// Throws InputError for more operations than a trace may have.
void emit(Trace& trace, std::vector<DispatchedCall>& calls, const Sharing& sharing,
          std::int64_t prefetch);

}  // namespace reshard::sim
