// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/studies.h"

#include <utility>

namespace reshard::sim {

Studies::Studies(std::shared_ptr<const Topology> topology, const PlannerRow& planner,
                 StudyOptions options)
    : topology_(std::move(topology)),
      planner_(planner),
      options_(options),
      cache_(options.cache_capacity) {}

std::shared_ptr<Study> Studies::made(const PlannerRow& planner, const Request& request) const {
  PlanFindings found;
  Explanation explanation;
  PlannerInput input;
  input.topology = topology_.get();
  input.memory_limit_bytes = options_.memory_limit_bytes;
  input.plan_time = [this](const Plan& plan, const Topology& topology) {
    return timed(plan, topology, options_.record_timelines);
  };
  input.explanation = options_.explain ? &explanation : nullptr;
  input.found = &found;
  auto plan = std::make_shared<const Plan>(make_plan(planner, request, input));
  auto study = std::make_shared<Study>(std::move(plan), topology_, std::move(found));
  if (options_.explain) study->set_explanation(std::move(explanation));
  return study;
}

std::shared_ptr<Study> Studies::of(const Request& request) {
  auto row = static_cast<std::int32_t>(&planner_ - planners().data());
  return cache_.get({request.fingerprint(), topology_->fingerprint(), row,
                     options_.memory_limit_bytes.value_or(-1)},
                    [&] { return made(planner_, request); });
}

std::shared_ptr<Study> Studies::of(std::shared_ptr<const Plan> plan) const {
  PlanFindings found{count_bytes(*plan), {}};
  if (options_.memory_limit_bytes)
    require_memory("the plan", found.bytes->peak_max, *options_.memory_limit_bytes);
  return std::make_shared<Study>(std::move(plan), topology_, std::move(found));
}

std::shared_ptr<const Plan> Studies::like(const Plan& plan, const Request& smaller) const {
  return made(find_planner(plan.planner), smaller)->shared_plan();
}

}  // namespace reshard::sim
