// SPDX-License-Identifier: BSD-3-Clause
// One rank's schedule on host memory, its messages carried by somebody else.
#pragma once

#include <functional>
#include <span>

#include "backends/host/rank_memory.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

// Returns when all are carried; throws where that fails.
using HostExchange = std::function<void(std::span<const reshard_transfer> sends,
                                        std::span<const reshard_transfer> receives)>;

// Runs the launches of the memory's schedule, which has no native collectives, in listed order.
void run_schedule(const Plan& plan, backends::host::RankMemory& memory,
                  const HostExchange& exchange);

}  // namespace reshard::capi
