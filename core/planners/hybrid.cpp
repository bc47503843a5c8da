// SPDX-License-Identifier: BSD-3-Clause
// The proposal of the PyTorch issue on P2P redistribution: a collective if one is enough, because
// libraries do them best; direct messages for everything else, because a chain of collectives moves
// bytes that no rank needs.
#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/planners/collectives/one_collective.h"
#include "core/planners/each_tensor.h"

namespace reshard {
namespace {

Plan plan_one_by_hybrid(const Request& request, const PlannerInput& input) {
  if (!request.same_mesh())
    throw InputError(fmt::format(
        "expected one mesh on both sides, found {} (p2p plans between meshes)", request.text()));
  OneCollective found = one_collective(request, input.explanation != nullptr);
  if (input.explanation != nullptr)
    input.explanation->add((found.transitions ? "hybrid: " : "hybrid takes p2p: ") + found.why);
  if (found.transitions) return emit_plan(request, "hybrid", *found.transitions, input.explanation);
  Plan plan = input.p2p != nullptr ? *input.p2p : plan_p2p(request, input);
  plan.planner = "hybrid";
  return plan;
}

}  // namespace

Plan plan_hybrid(const Demand& demand, const PlannerInput& input) {
  return plan_each(demand, input, "hybrid", plan_one_by_hybrid);
}

}  // namespace reshard
