// SPDX-License-Identifier: BSD-3-Clause
// Plans for jobs in which tensors have an order (core/layout/stages.h).
#pragma once

#include <span>

#include "core/layout/stages.h"
#include "core/planners/planner.h"

namespace reshard {

// Named as the planner of a plan if several planners made its stages.
inline constexpr std::string_view kByStage = "by-stage";

// make_plan for a job in stages: the planner plans the tensors of each stage together, and the
// plans of the stages are joined. Stages that are equal, or alike (core/demand/likeness.h), are
// planned once. A planner that weighs others does so for each stage, and takes another planner's
// plan of the whole job if that is faster. Without stages this is make_plan.
Plan make_plan_by_stage(const PlannerRow& planner, std::span<const Request> requests,
                        const Stages& stages, const PlannerInput& input);

}  // namespace reshard
