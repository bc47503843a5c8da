// SPDX-License-Identifier: BSD-3-Clause
#include "sim/job/job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/torch/redistribution.h"
#include "sim/machines/presets.h"
#include "sim/store/data_check.h"
#include "sim/store/machine_memory.h"
#include "sim/store/store.h"

namespace reshard::sim {

namespace {

// The min-cost planner's estimate for a plan of `graph`, else that of the planner which PyTorch
// would use; PyTorch redistributes one tensor after the other.
void add_torch_facts(std::int32_t devices_per_host, RunReport& report) {
  double cost_us = 0;
  std::set<bool> greedily;
  for (const Request& request : report.tensors) {
    if (!request.is_product()) {  // not a DTensor
      cost_us = std::numeric_limits<double>::infinity();
      continue;
    }
    bool greedy = report.planner != "graph" && torch_plans_greedily(request);
    greedily.insert(greedy);
    cost_us += greedy ? torch_redistribute_cost_us(request, devices_per_host)
                      : torch_min_cost_us(request, devices_per_host);
    for (TorchDefect& defect : torch_known_defects(request, devices_per_host)) {
      std::vector<TorchDefect>& all = report.torch_defects;
      if (std::find(all.begin(), all.end(), defect) == all.end()) all.push_back(std::move(defect));
    }
  }
  report.torch_planner = greedily.size() == 2      ? "greedy and min-cost"
                         : greedily.contains(true) ? "greedy"
                                                   : "min-cost";
  if (std::isfinite(cost_us)) report.torch_cost_us = cost_us;
}

}  // namespace

std::shared_ptr<const Topology> topology_for(const std::string& spec, Rank highest) {
  if (spec.empty()) return std::make_shared<const Topology>(default_topology(to_int(highest) + 1));
  auto topology = std::make_shared<const Topology>(find_topology(spec));
  require_devices(*topology, to_int(highest));
  return topology;
}

Rank Subject::highest_rank() const { return plan ? plan->ranks.back() : ranks_of(requests).back(); }

Job::Job(const Subject& subject, std::shared_ptr<const Topology> topology,
         const PlannerRow& planner, const StudyOptions& options)
    : from_elsewhere_(subject.plan != nullptr),
      cold_(options.cold),
      layouts_(subject.layouts),
      studies_(std::move(topology), planner, options),
      study_(from_elsewhere_ ? studies_.of(subject.plan)
                             : studies_.of(subject.requests, {}, subject.stages)) {}

RunReport Job::report(bool with_path) const {
  if (with_path) study_->expect({.spans = true, .path = true});  // one run for both
  RunReport report = report_on(*study_);
  report.buffers = stored();
  if (!from_elsewhere_) report.planner_asked = studies_.planner().name;
  report.cache = studies_.cache_statistics();
  if (cold_) report.first_use = study_->first_use();
  if (with_path) report.path = study_->critical_path();
  return report;
}

RunReport Job::report_with_torch(bool with_path) const {
  RunReport out = report(with_path);
  add_torch_facts(study_->topology().node().devices, out);
  return out;
}

void Job::add_as_one(RunReport& report) {
  if (study_->tensors().size() * study_->plan_in_series().ranks.size() > kMostShardsTried) return;
  try {
    std::shared_ptr<Study> together = studies_.of(study_->tensors(), {}, study_->stages());
    if (together->time_ps() < report.time_ps)
      report.as_one = {together->plan_in_series().planner, together->time_ps()};
  } catch (const InputError&) {  // no plan within the memory limit
  }
}

DataReport Job::moved(std::int64_t budget_bytes) const {
  if (!from_elsewhere_) return sim::moved(studies_, study_->shared_plan(), budget_bytes, stored());
  if (store_bytes(plan()) > budget_bytes)
    return not_moved(
        study_->tensors(),
        "a plan from a file cannot be reduced, and its full size is above the data budget");
  return move_and_check(study_->shared_plan(), {}, budget_bytes, memory_of_machine_bytes());
}

DataReport Job::moved_if_within(std::int64_t budget_bytes) const {
  std::int64_t needed = data_bytes(study_->plan_in_series(), stored());
  if (needed <= budget_bytes) return moved(budget_bytes);
  return not_moved(study_->tensors(), fmt::format("it takes {}, above the data budget of {}",
                                                  bytes_text(needed), bytes_text(budget_bytes)));
}

DataReport not_moved(std::span<const Request> tensors, std::string why) {
  DataReport report;
  if (tensors.size() == 1) report.shape = tensors.front().shape();
  report.note = std::move(why);
  return report;
}

}  // namespace reshard::sim
