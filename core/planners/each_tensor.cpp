// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/each_tensor.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/plan/join.h"

namespace reshard {
namespace {

// Above these, planning tensor by tensor takes longer than all else.
constexpr std::size_t kMostKinds = 48, kMostRanks = 64, kMostShards = 1 << 14;

// A single tensor is in no series.
bool is_planned_together(std::span<const Request> requests) {
  std::set<Digest> kinds;
  for (const Request& request : requests) kinds.insert(request.fingerprint());
  return requests.size() == 1 ||
         !too_large_for_each_tensor(requests.size(), ranks_of(requests).size(), kinds.size())
              .empty();
}

}  // namespace

std::string too_large_for_each_tensor(std::size_t tensors, std::size_t ranks, std::size_t kinds) {
  if (tensors * ranks > kMostShards)
    return fmt::format("{} tensors on {} ranks are more than {} shards", tensors, ranks,
                       kMostShards);
  if (ranks > kMostRanks) return fmt::format("{} ranks are more than {}", ranks, kMostRanks);
  if (kinds > kMostKinds)
    return fmt::format("{} kinds of tensors are more than {}", kinds, kMostKinds);
  return {};
}

bool plans_only_together(const PlannerRow& planner, std::span<const Request> requests,
                         const Stages& stages) {
  if (planner.each_tensor) return false;
  if (stages.empty()) return is_planned_together(requests);
  return std::all_of(stages.begin(), stages.end(), [&](const Stage& stage) {
    std::vector<Request> own;
    for (TensorId tensor : stage.tensors) own.push_back(requests[to_index(tensor)]);
    return is_planned_together(own);
  });
}

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
