// SPDX-License-Identifier: BSD-3-Clause
// For planners that plan one request at a time.
#pragma once

#include <functional>
#include <string_view>

#include "core/planners/planner.h"

namespace reshard {

// Makes the plan of every kind of tensor once, and joins the plans of all tensors. `make` gets an
// input without p2p's plan. For a job of one tensor, this is the plan that `make` returns.
Plan plan_each(const Demand& demand, const PlannerInput& input, std::string_view planner,
               const std::function<Plan(const Request& request, const PlannerInput& input)>& make);

// Adds the reasons of a plan. Its steps begin at `first` in the joined plan.
void add_shifted(const Explanation& from, std::int32_t first, Explanation& to);

}  // namespace reshard
