// SPDX-License-Identifier: BSD-3-Clause
// A plan as text: what `reshard plan --emit plan` prints and `--plan FILE` reads. Writing, reading
// and writing again gives the same bytes. The format is documented by example in
// traces/plan-format.md.
#pragma once

#include <string>
#include <string_view>

#include "core/plan/plan.h"

namespace reshard {

std::string to_text(const Plan& plan);

// Throws InputError "FILE:LINE: ..." for malformed text, and at the step's line for a plan that the
// proof refutes.
Plan parse_plan(std::string_view text, std::string_view file);
}  // namespace reshard
