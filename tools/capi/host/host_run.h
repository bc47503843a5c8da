// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule on a caller's host memory, its messages carried by somebody else.
#pragma once

#include <functional>
#include <span>

#include "backends/host/rank_memory.h"
#include "tools/capi/handles.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

// Carries one launch's messages, of which there is one at least. `tag` is the launch's own.
using Carry = std::function<void(const Messages& work, const backends::host::RankMemory& memory,
                                 std::int32_t tag)>;

// Returns when all are carried; throws where that fails.
using HostExchange = std::function<void(std::span<const reshard_transfer> sends,
                                        std::span<const reshard_transfer> receives)>;
// Each message in one piece.
Carry whole_messages(const Plan& plan, const HostExchange& exchange);

// Checks what the caller lends, and runs the program's launches, which have no native collectives,
// in listed order.
void run_program(const reshard_program& program, const reshard_run& run, const Carry& carry);

}  // namespace reshard::capi
