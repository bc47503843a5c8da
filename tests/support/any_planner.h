// SPDX-License-Identifier: BSD-3-Clause
// Plans of every registered planner, so that all tests with random plans also try a new planner.
#pragma once

#include <optional>
#include <vector>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "tests/support/prng.h"

namespace reshard::test {

// The planners that make plans themselves rather than weigh the plans of others.
inline std::vector<const PlannerRow*> own_planners() {
  std::vector<const PlannerRow*> out;
  for (const PlannerRow& row : planners())
    if (!row.weighs_others) out.push_back(&row);
  return out;
}

// The planners that plan requests of all layouts, between any meshes.
inline std::vector<const PlannerRow*> planners_of_all_layouts() {
  std::vector<const PlannerRow*> out;
  for (const PlannerRow& row : planners())
    if (!row.needs_placements) out.push_back(&row);
  return out;
}

// Nothing if the planner has no plan for such requests, mostly one across meshes.
inline std::optional<Plan> plan_by(const PlannerRow& planner, const Demand& demand,
                                   const PlannerInput& input) {
  try {
    return made_by(planner, demand, input);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

// By a random planner among those that have a plan.
inline Plan any_plan(Prng& prng, const Demand& demand, const PlannerInput& input) {
  std::vector<const PlannerRow*> rows = own_planners();
  for (;;)
    if (std::optional<Plan> plan = plan_by(*prng.pick(rows), demand, input)) return *plan;
}

}  // namespace reshard::test
