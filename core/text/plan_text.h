// SPDX-License-Identifier: BSD-3-Clause
// A plan as text: the output of `reshard plan --emit plan` and the input of `--plan FILE`. Reading
// and writing a text again gives the same bytes. traces/plan-format.md documents the format by
// example.
#pragma once

#include <string>
#include <string_view>

#include "core/plan/plan.h"

namespace reshard {

std::string to_text(const Plan& plan);

// Throws InputError "FILE:LINE: ..." for malformed text, and, at the line of the step, for a plan
// that the proof refutes.
Plan parse_plan(std::string_view text, std::string_view file);
}  // namespace reshard
