// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/each_tensor.h"
#include "core/plan/join.h"

#include <utility>
#include <vector>

namespace reshard {

void add_shifted(const Explanation& from, std::int32_t first, Explanation& to) {
  for (const Explanation::Line& line : from.lines())
    line.step ? to.add(StepId{first + static_cast<std::int32_t>(*line.step)}, line.why)
              : to.add(line.why);
}

Plan plan_each(const Demand& demand, const PlannerInput& input, std::string_view planner,
               const std::function<Plan(const Request& request, const PlannerInput& input)>& make) {
  if (demand.requests().size() == 1) return make(demand.requests().front(), input);
  std::vector<Plan> plans;
  std::vector<Explanation> reasons(demand.kinds().size());
  std::vector<const Plan*> of_tensor(demand.requests().size());
  plans.reserve(reasons.size());
  for (const TensorKind& kind : demand.kinds()) {
    PlannerInput own = input;
    own.p2p = nullptr;
    own.p2p_ps.reset();
    own.found = nullptr;
    own.explanation = input.explanation != nullptr ? &reasons[plans.size()] : nullptr;
    plans.push_back(make(kind.request(), own));
    for (TensorId tensor : kind.tensors) of_tensor[to_index(tensor)] = &plans.back();
  }
  std::vector<PlanOfTensors> parts;
  for (std::size_t t = 0; t < of_tensor.size(); ++t)
    parts.push_back({of_tensor[t], {static_cast<TensorId>(t)}});
  Plan out =
      join({demand.requests().begin(), demand.requests().end()}, parts, std::string(planner));
  if (input.explanation == nullptr) return out;
  std::int32_t first = 0;
  for (const Plan* plan : of_tensor) {
    add_shifted(reasons[to_index(plan - plans.data())], first, *input.explanation);
    first += static_cast<std::int32_t>(plan->steps.size());
  }
  return out;
}

}  // namespace reshard
