// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/studies.h"

#include <utility>

namespace reshard::sim {

namespace {

// On more ranks the timelines of plans that lose would take more memory than the plans, and the
// winner is simulated again where its timeline is asked for.
constexpr std::size_t kMaxRanksRecorded = 1024;

}  // namespace

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
  bool recorded = options_.record_timelines && request.ranks().size() <= kMaxRanksRecorded;
  input.plan_time = [recorded](const Plan& plan, const Topology& topology) {
    return timed(plan, topology, recorded);
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
