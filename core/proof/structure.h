// SPDX-License-Identifier: BSD-3-Clause
// The part of the proof that needs no contents: that every step is well formed (plan.h). After it,
// all indices of the plan are in range.
#pragma once

#include <optional>

#include "core/plan/plan.h"
#include "core/proof/proof.h"

namespace reshard {

std::optional<Refutation> check_structure(const Plan& plan);

}  // namespace reshard
