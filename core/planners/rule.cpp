// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch does today: the steps of its greedy planner (core/torch/greedy.cpp), one collective
// or local step each, with its padding. It is the baseline that users know from their own runs, and
// it shows what a better plan is worth.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/planners/collectives/emit.h"
#include "core/planners/each_tensor.h"
#include "core/torch/placement_state.h"
#include "core/torch/redistribution.h"

namespace reshard {
namespace {

std::string reason(const TorchStep& step, const Request& request) {
  std::string out = fmt::format("axis {}: {} -> {}", step.axis, text(step.from), text(step.to));
  const Placement& wanted = request.destination().placement(step.axis);
  if (!step.to.is_replicate() || wanted.is_replicate()) return out + ", as in the destination";
  if (wanted.is_strided() || step.from.is_strided())
    return out +
           fmt::format(", because PyTorch changes strided shards only through R ({} comes later)",
                       text(wanted));
  return out +
         fmt::format(
             ", because the outer cuts of dim {} are not yet the destination's ({} comes later)",
             int{wanted.dim}, text(wanted));
}

Plan plan_one_by_rule(const Request& request, const PlannerInput& input) {
  if (!request.same_mesh())
    throw InputError(
        fmt::format("expected one mesh on both sides, as in PyTorch, found {} (p2p "
                    "plans between meshes)",
                    request.text()));
  std::vector<TorchStep> steps = torch_greedy_steps(request);
  std::vector<Transition> transitions;
  transitions.reserve(steps.size());
  PlacementState state(request.source());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const TorchStep& step = steps[i];
    state.place(step.axis, step.to);
    transitions.push_back(
        {{step.axis},
         i + 1 < steps.size() ? state.layout_like(request.source()) : request.destination(),
         input.explanation != nullptr ? reason(step, request) : std::string()});
  }
  return emit_plan(request, "rule", transitions, input.explanation);
}

}  // namespace

Plan plan_rule(const Demand& demand, const PlannerInput& input) {
  return plan_each(demand, input, "rule", plan_one_by_rule);
}

}  // namespace reshard
