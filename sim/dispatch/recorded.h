// SPDX-License-Identifier: BSD-3-Clause
// Lines of which only the trace knows what became of them: calls of operators without a rule, and
// what comes of tensors whose sizes nothing says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/ops/decision.h"
#include "sim/dispatch/choices.h"

namespace reshard::sim {

// Why the line is taken as it was recorded; empty where it is decided. Throws InputError where it
// must be and the trace does not say what was chosen.
std::string why_recorded(const OperatorLine& line, const HeldOf& held);

// What the line expects. Outputs of which the trace says no shape have the placements alone.
Decision recorded_decision(const OperatorLine& line, const HeldOf& held);

// Whether the sizes of output `output` of a recorded line are known.
bool is_sized(const OperatorLine& line, std::size_t output, const HeldOf& held);

// Recorded calls by operator, as they first come.
std::vector<TakenAsRecorded> taken_as_recorded(const std::vector<DispatchedCall>& calls);

}  // namespace reshard::sim
