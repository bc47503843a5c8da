// SPDX-License-Identifier: BSD-3-Clause
// Runs one rank's schedule on a caller's host memory; messages are carried by a function.
#pragma once

#include <functional>
#include <span>

#include "backends/host/rank_memory.h"
#include "tools/capi/handles.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

// Carries one launch's messages, of which there is at least one. `tag` is unique to the launch.
using Carry = std::function<void(const Messages& work, const backends::host::RankMemory& memory,
                                 std::int32_t tag)>;

// Returns when all transfers are done; throws if that fails.
using HostExchange = std::function<void(std::span<const reshard_transfer> sends,
                                        std::span<const reshard_transfer> receives)>;
// A Carry that passes each message to `exchange` in one piece.
Carry whole_messages(const Plan& plan, const HostExchange& exchange);

// Checks what the caller lends and runs the program's launches in listed order; none of them is a
// native collective.
void run_program(const reshard_program& program, const reshard_run& run, const Carry& carry);

}  // namespace reshard::capi
