// SPDX-License-Identifier: BSD-3-Clause
// The way of a request through the house, for every command: plan (cached), prove, count, time,
// bound, move the bytes. The parts of the house do not see each other; here they are handed to each
// other as functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/bounds/bounds.h"
#include "core/plan/timeline.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/schedule/accounting.h"
#include "core/topology/topology.h"
#include "sim/report/run_report.h"
#include "sim/study/plan_cache.h"
#include "tools/options.h"

namespace reshard::tools {

inline constexpr std::int64_t kDefaultDataBudgetBytes = std::int64_t{2} << 30;

// A proved plan with its figures.
struct ProvedPlan {
  std::shared_ptr<const Plan> plan;
  ProofResult proof;
};

class Pipeline {
 public:
  // Keeps the topology by reference.
  Pipeline(const Topology& topology, const PlannerRow& planner,
           std::optional<std::int64_t> memory_limit_bytes, std::int64_t cache_capacity);

  // Plans and proves, or finds it in the cache. Throws InputError where the planner refuses,
  // CheckFailure where it is wrong.
  std::shared_ptr<const Plan> plan(const Request& request);
  // The same with the proof's findings. A plan that explains itself is made anew.
  ProvedPlan proved(const Request& request, Explanation* explanation = nullptr);
  ProvedPlan proved_outside_cache(const Request& request, Explanation* explanation = nullptr) const;
  // `plan`'s strategy on a smaller request, outside the cache: what `auto` took for the full size
  // is what must be checked.
  std::shared_ptr<const Plan> proved_like(const Plan& plan, const Request& smaller) const;

  const Topology& topology() const { return topology_; }
  const PlannerRow& planner() const { return planner_; }
  std::optional<std::int64_t> memory_limit_bytes() const { return memory_limit_bytes_; }
  PlanCacheStatistics cache_statistics() const { return cache_.statistics(); }

 private:
  PlanKey key_of(const Request& request) const;
  ProvedPlan planned_by(const PlannerRow& planner, const Request& request,
                        Explanation* explanation) const;

  const Topology& topology_;
  const PlannerRow& planner_;
  std::optional<std::int64_t> memory_limit_bytes_;
  PlanCache cache_;
};

// Time of a plan that runs alone, with its flows.
Timeline timed(const std::shared_ptr<const Plan>& plan, const Topology& topology);

// Everything about one plan. Throws CheckFailure where the time is below the bound: then the engine
// or the bound is wrong.
sim::RunReport run_report(const ProvedPlan& proved, const Topology& topology,
                          const Timeline& timeline);

// Moves the bytes within the budget and compares them. A plan from a file is moved at full size or
// not at all.
sim::DataFacts moved(const ProvedPlan& proved, const Pipeline& pipeline, std::int64_t budget_bytes,
                     bool from_file);

// Bytes that this process may take: the machine's memory, or its control group's limit where that
// is less.
std::int64_t memory_of_machine_bytes();

// The topology that the option names, or the default that holds the ranks; checked to hold them.
Topology topology_for(const std::string& spec, const Request& request);

// A request from the options, or the proved plan of --plan FILE.
struct Subject {
  std::optional<Request> request;
  std::shared_ptr<const Plan> plan;  // set for --plan
  const Request& asked() const { return plan ? plan->request() : *request; }
};
Subject subject_of(const RequestOptions& options);

// The proved plan of the subject. A plan from a file must fit the memory limit as a made one must.
ProvedPlan proved_plan_of(const Subject& subject, Pipeline& pipeline,
                          Explanation* explanation = nullptr);

std::int64_t data_budget_of(const std::string& text);

}  // namespace reshard::tools
