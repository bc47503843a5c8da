// SPDX-License-Identifier: BSD-3-Clause
// What a redistribution of an operator's input is to a planner, and to CommDebugMode.
#pragma once

#include <optional>
#include <span>

#include "core/layout/request.h"
#include "core/ops/torch_moves.h"

namespace reshard::sim {

// What must be carried: a look-up's indices are masked where they lie, and what norms and look-ups
// leave are addends of a sum. None where every rank has all that it needs.
std::optional<Request> request_of(const TensorSpec& from, const OpPlacements& to,
                                  const MeshRef& mesh);

// "all_gather", "all_reduce", "reduce_scatter", "all_to_all"; null for a step within each rank, as
// along an axis of one rank.
const char* collective_of(const OpStep& step, std::span<const std::int32_t> sizes);

}  // namespace reshard::sim
