// SPDX-License-Identifier: BSD-3-Clause
// Lines of which only the trace knows what became of them: calls of operators without a rule, or
// with arguments that our rule does not cover, and what comes of tensors whose sizes nothing says.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/decision.h"
#include "sim/dispatch/choices.h"

namespace reshard::sim {

// The line's decision: what it expects (Decision::recorded says why) where only the trace knows
// it, else what `decide` makes of its call. Outputs of which the trace says no shape have the
// placements alone. Throws InputError where it must be known and the trace does not say it.
Decision decision_of(const OperatorLine& line, const HeldOf& held,
                     const std::function<Decision(const OpCall&)>& decide);

// Whether the sizes of output `output` of a recorded line are known.
bool is_sized(const OperatorLine& line, std::size_t output, const HeldOf& held);

// Recorded calls by operator, as they first come.
std::vector<TakenAsRecorded> taken_as_recorded(const std::vector<DispatchedCall>& calls);

}  // namespace reshard::sim
