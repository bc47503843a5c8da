// SPDX-License-Identifier: BSD-3-Clause
// The way of a request through the house, the same for command line, traces and C API: planned,
// proved, counted, and what is asked for beside; cached.
//
// The parts of the house do not see each other; here they are handed to each other as functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/planners/planner.h"
#include "core/topology/topology.h"
#include "sim/study/study.h"
#include "sim/study/study_cache.h"

namespace reshard::sim {

struct StudyOptions {
  std::optional<std::int64_t> memory_limit_bytes = {};  // of every plan, per rank
  std::int64_t cache_capacity = 0;
  bool explain = false;           // studies keep the planners' reasons
  bool record_timelines = false;  // Study::timeline() will be asked for: planners that time plans
                                  // record what they see
};

class Studies {
 public:
  Studies(std::shared_ptr<const Topology> topology, const PlannerRow& planner,
          StudyOptions options = {});

  // Throws InputError where the planner refuses, CheckFailure where it is wrong.
  std::shared_ptr<Study> of(const Request& request);
  // Of a plan that came from elsewhere; it must fit the memory limit as a made one must.
  std::shared_ptr<Study> of(std::shared_ptr<const Plan> plan) const;
  // The proved plan of the strategy that made `plan` for a smaller request, outside the cache: what
  // `auto` took for the full size is what must be checked.
  std::shared_ptr<const Plan> like(const Plan& plan, const Request& smaller) const;

  const std::shared_ptr<const Topology>& topology() const { return topology_; }
  const PlannerRow& planner() const { return planner_; }
  CacheStatistics cache_statistics() const { return cache_.statistics(); }

 private:
  std::shared_ptr<Study> made(const PlannerRow& planner, const Request& request) const;

  std::shared_ptr<const Topology> topology_;
  const PlannerRow& planner_;
  StudyOptions options_;
  StudyCache cache_;
};

}  // namespace reshard::sim
