// SPDX-License-Identifier: BSD-3-Clause
// One plan for the tensors of several plans.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// A plan as part of one for more tensors, in which its tensor t is number tensors[t].
struct PlanOfTensors {
  const Plan* plan;
  std::vector<TensorId> tensors;
};
// One plan for all the tensors of several plans, which stay independent: the steps of the first
// plan, followed by those of the second, and so on. Every tensor must be in one of the parts.
Plan join(std::vector<Request> tensors, std::span<const PlanOfTensors> parts, std::string planner);
// The same with the tensors in the order of the plans, with independent stages, and with streams
// assigned as for a planner's plan. There must be at least one plan.
Plan join(const std::vector<Plan>& plans);
// One plan for a job in stages, from the plans of its stages, each for the tensors of the stage in
// their order. On every rank, the steps of a stage follow those of the stages before it.
Plan join_stages(std::vector<Request> tensors, Stages stages, std::span<const Plan* const> plans,
                 std::string planner);

}  // namespace reshard
