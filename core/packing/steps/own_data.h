// SPDX-License-Identifier: BSD-3-Clause
// What ranks already hold of what they need.
#pragma once

#include <functional>
#include <string>

#include "core/demand/demand.h"
#include "core/plan/plan.h"

namespace reshard {

// Adds steps in which every rank copies, or divides, what it holds of its destinations and what
// no rank folds; gives `say` the reason for each.
void keep_own(Plan& plan, const Demand& demand,
              const std::function<void(StepId, std::string)>& say);

}  // namespace reshard
