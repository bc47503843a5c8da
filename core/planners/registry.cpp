// SPDX-License-Identifier: BSD-3-Clause
// The table of planners.
#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/plan/streams.h"
#include "core/planners/planner.h"

namespace reshard {
namespace {

constexpr PlannerRow kPlanners[] = {
    {"rule", "PyTorch's greedy planner, step for step: what DTensor does today", plan_rule, false,
     true, true},
    {"graph", "PyTorch's min-cost planner: least cost by its model, consecutive steps joined",
     plan_graph, false, true, true},
    {"p2p", "direct exchange of box intersections: fewest bytes, between any two meshes", plan_p2p},
    {"hybrid", "one collective where that is enough, otherwise p2p", plan_hybrid, false, true,
     true},
    {"packed",
     "trees over all links, with relays, multicast and folds along the way, in chunks: near the "
     "bound",
     plan_packed},
    {"auto",
     "times the plans of all the others on the topology and takes the fastest within the memory "
     "limit",
     plan_auto, true},
};

void require_placements(const Demand& demand) {
  for (const TensorKind& kind : demand.kinds())
    if (!kind.request().is_product())
      throw InputError(fmt::format(
          "expected placements on both sides, found {} (p2p and packed plan all layouts)",
          kind.request().text()));
}

}  // namespace

std::span<const PlannerRow> planners() { return kPlanners; }

const PlannerRow& find_planner(std::string_view name, std::string_view field) {
  std::string names;
  for (const PlannerRow& row : kPlanners) {
    if (row.name == name) return row;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  throw InputError(fmt::format("{}: expected one of {}, found {}", field, names, quoted(name)));
}

NodeOf nodes_of(const PlannerInput& input) {
  if (input.topology == nullptr) return {};
  return [topology = input.topology](Rank rank) { return topology->node_of(rank); };
}

void finish(Plan& plan, const PlannerInput& input, PlanFindings& found) {
  plan.frees_sources = input.memory.free_sources;
  if (found.finished) return;
  if (input.memory.any() && !found.needs) {
    Fitted fitted = fit(plan, input.memory, nodes_of(input));
    if (fitted.changed) found = {};
    found.needs = fitted.needs;
  }
  // Streams order nothing where steps do not run in turn.
  if (assign_streams(plan) && input.steps_in_turn) found.timing.reset();
  found.finished = true;
}

Plan made_by(const PlannerRow& planner, const Demand& demand, const PlannerInput& input) {
  PlanFindings own;
  PlannerInput to = input;
  if (to.found == nullptr) to.found = &own;
  try {
    if (planner.needs_placements) require_placements(demand);
    Plan plan = planner.make(demand, to);
    finish(plan, input, *to.found);
    return plan;
  } catch (const InputError& error) {
    throw error.in(fmt::format("planner {}", planner.name));
  }
}

Plan make_plan(const PlannerRow& planner, const Demand& demand, const PlannerInput& input) {
  PlanFindings own;
  PlannerInput to = input;
  if (to.found == nullptr) to.found = &own;
  Plan plan = made_by(planner, demand, to);
  if (input.memory.any())
    require_fit(fmt::format("planner {}", planner.name), *to.found->needs, input.memory);
  return plan;
}

}  // namespace reshard
