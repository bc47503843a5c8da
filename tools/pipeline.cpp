// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/schedule/workload.h"
#include "core/text/plan_text.h"
#include "sim/machines/presets.h"
#include "sim/machines/text_file.h"
#include "sim/network/engine.h"
#include "sim/store/data_check.h"

namespace reshard::tools {

namespace {

// A plan of 10^6 messages is about 100 MB of text.
constexpr std::size_t kMaxPlanTextBytes = std::size_t{4} << 30;

std::int32_t index_of(const PlannerRow& planner) {
  return static_cast<std::int32_t>(&planner - planners().data());
}

}  // namespace

Pipeline::Pipeline(const Topology& topology, const PlannerRow& planner,
                   std::optional<std::int64_t> memory_limit_bytes, std::int64_t cache_capacity)
    : topology_(topology),
      planner_(planner),
      memory_limit_bytes_(memory_limit_bytes),
      cache_(cache_capacity) {}

PlanKey Pipeline::key_of(const Request& request) const {
  return {request.fingerprint(), topology_.fingerprint(), index_of(planner_),
          memory_limit_bytes_.value_or(-1)};
}

ProvedPlan Pipeline::planned_by(const PlannerRow& planner, const Request& request,
                                Explanation* explanation) const {
  PlannerInput input;
  input.topology = &topology_;
  input.memory_limit_bytes = memory_limit_bytes_;
  input.plan_time = sim::time_of;
  input.explanation = explanation;
  auto plan = std::make_shared<const Plan>(make_plan(planner, request, input));
  ProofResult proof = prove(*plan);
  return {std::move(plan), std::move(proof)};
}

ProvedPlan Pipeline::proved_outside_cache(const Request& request, Explanation* explanation) const {
  return planned_by(planner_, request, explanation);
}

std::shared_ptr<const Plan> Pipeline::proved_like(const Plan& plan, const Request& smaller) const {
  return planned_by(find_planner(plan.planner), smaller, nullptr).plan;
}

ProvedPlan Pipeline::proved(const Request& request, Explanation* explanation) {
  std::optional<ProvedPlan> made;
  std::shared_ptr<const Plan> plan = cache_.get(key_of(request), [&] {
    made = proved_outside_cache(request, explanation);
    return made->plan;
  });
  if (made) return std::move(*made);
  // A cached plan does not remember its reasons.
  if (explanation != nullptr) return proved_outside_cache(request, explanation);
  // The cache keeps plans, not what their proofs found beside.
  return {plan, prove(*plan)};
}

std::shared_ptr<const Plan> Pipeline::plan(const Request& request) {
  return cache_.get(key_of(request), [&] { return proved_outside_cache(request).plan; });
}

Timeline timed(const std::shared_ptr<const Plan>& plan, const Topology& topology) {
  return sim::run(workload_of(plan), topology, {.record_flows = true, .record_spans = true});
}

sim::RunReport run_report(const ProvedPlan& proved, const Topology& topology,
                          const Timeline& timeline) {
  const Plan& plan = *proved.plan;
  Bound bound = bound_of(plan.request(), topology);
  RESHARD_CHECK(timeline.end_ps >= bound.time_ps(),
                plan.request().text() + " takes " + duration_text(timeline.end_ps) +
                    ", less than its bound " + duration_text(bound.time_ps()));
  return sim::report_on(plan, count_bytes(plan), proved.proof, timeline, topology, bound);
}

sim::DataFacts moved(const ProvedPlan& proved, const Pipeline& pipeline, std::int64_t budget_bytes,
                     bool from_file) {
  if (from_file && sim::store_bytes(*proved.plan) > budget_bytes) {
    sim::DataFacts facts;
    facts.shape = text(proved.plan->request().shape());
    facts.note =
        "a plan from a file cannot be made smaller, and its full size is above the data budget";
    return facts;
  }
  sim::MakePlan replan = [&](const Request& smaller) {
    return pipeline.proved_like(*proved.plan, smaller);
  };
  sim::DataReport report = sim::move_and_check(proved.plan->request(), proved.plan, replan,
                                               budget_bytes, memory_of_machine_bytes());
  sim::DataFacts facts;
  facts.checked = report.checked;
  facts.full_size = report.full_size;
  facts.shape = text(report.shape);
  facts.elements = report.elements;
  if (report.digest) facts.digest = report.digest->hex();
  if (!report.full_size) facts.note = "full size is above the data budget";
  return facts;
}

std::int64_t memory_of_machine_bytes() {
  std::int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  std::int64_t bytes =
      pages > 0 && page > 0 ? pages * page : std::numeric_limits<std::int64_t>::max();
  // In a control group without a limit the file says "max".
  std::int64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

Topology topology_for(const std::string& spec, const Request& request) {
  std::int64_t highest = to_int(request.ranks().back());
  if (spec.empty()) return sim::default_topology(highest + 1);
  Topology topology = sim::find_topology(spec);
  sim::require_devices(topology, highest);
  return topology;
}

Subject subject_of(const RequestOptions& options) {
  Subject subject;
  if (options.plan_file.empty()) {
    subject.request = request_of(options);
    return subject;
  }
  for (const auto& [given, name] : {std::pair{!options.mesh.empty(), "--mesh"},
                                    {!options.to_mesh.empty(), "--to-mesh"},
                                    {!options.ranks.empty(), "--ranks"},
                                    {!options.to_ranks.empty(), "--to-ranks"},
                                    {options.shape_given, "--shape"},
                                    {!options.dtype.empty(), "--dtype"},
                                    {!options.from.empty(), "--from"},
                                    {!options.to.empty(), "--to"}})
    if (given)
      throw InputError(std::string(name) +
                       ": the request of --plan FILE stands in the file; give one or the other");
  subject.plan = std::make_shared<const Plan>(parse_plan_of_one(
      sim::read_text_file(options.plan_file, kMaxPlanTextBytes), options.plan_file));
  return subject;
}

ProvedPlan proved_plan_of(const Subject& subject, Pipeline& pipeline, Explanation* explanation) {
  if (!subject.plan) return pipeline.proved(subject.asked(), explanation);
  std::int64_t peak = count_bytes(*subject.plan).peak_max;
  if (peak > pipeline.memory_limit_bytes().value_or(peak))
    throw InputError("memory limit: expected at least " + std::to_string(peak) +
                     " bytes per rank, which the plan needs, found " +
                     std::to_string(*pipeline.memory_limit_bytes()));
  return {subject.plan, prove(*subject.plan)};
}

std::int64_t data_budget_of(const std::string& text) {
  return text.empty() ? kDefaultDataBudgetBytes : parse_bytes(text, "--data-budget");
}

}  // namespace reshard::tools
