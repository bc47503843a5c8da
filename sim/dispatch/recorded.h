// SPDX-License-Identifier: BSD-3-Clause
// Lines with an outcome that only the trace knows: calls of operators without a rule, or with
// arguments that our rule does not cover, and whatever depends on tensors of unknown sizes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/decision.h"
#include "sim/dispatch/choices.h"

namespace reshard::sim {

// The line's decision: what the trace expects, if only the trace knows it (Decision::recorded has
// the reason), otherwise what `decide` returns for its call. Outputs without a shape in the trace
// have only placements. Throws InputError if the outcome must be known and the trace does not state
// it.
Decision decision_of(const OperatorLine& line, const HeldOf& held,
                     const std::function<Decision(const OpCall&)>& decide);

// Whether the sizes of output `output` of a recorded line are known.
bool is_sized(const OperatorLine& line, std::size_t output, const HeldOf& held);

// Recorded calls by operator, in order of first occurrence.
std::vector<TakenAsRecorded> taken_as_recorded(const std::vector<DispatchedCall>& calls);

}  // namespace reshard::sim
