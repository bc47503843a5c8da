// SPDX-License-Identifier: BSD-3-Clause
// One rank's program on host memory, its messages carried by somebody else.
//
// Every step that needs other ranks is one or two exchanges of contiguous messages, collectives
// too: there a fold must be taken in the plan's order, so each member gets all operands of its own
// block at once and folds them; all_reduce shares the folded blocks in a second exchange. A ring
// would send as many bytes but fold in another order.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/rank_program.h"
#include "core/schedule/temporaries.h"
#include "tools/capi/reshard.h"

namespace reshard::capi {

struct HostBuffers {
  const std::byte* source;
  std::byte* destination;
  std::byte* arena;
};

// Returns when all are carried; throws where that fails.
using HostExchange = std::function<void(std::span<const reshard_transfer> sends,
                                        std::span<const reshard_transfer> receives)>;

// Runs the operations in listed order.
void run_program(const Plan& plan, const RankProgram& program, const TemporaryLayout& temporaries,
                 const HostBuffers& buffers, const HostExchange& exchange);

}  // namespace reshard::capi
