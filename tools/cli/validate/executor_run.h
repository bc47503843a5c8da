// SPDX-License-Identifier: BSD-3-Clause
// Fills, runs and checks a prepared plan: this process's part, and how the root collects
// everyone's.
//
// Each process checks its own shards against the definition of the request, element by element, and
// sends the root a digest and the first difference, never the bytes: those of all ranks may not fit
// into one process. If they do, the root runs the same plan in the store and compares digests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/plan/executor.h"
#include "sim/report/validate_report.h"
#include "sim/store/data_check.h"

namespace reshard::tools {

struct RunCounts {
  std::int64_t warm_up = 2, iterations = 9;
};

// Called between runs with the number of runs done.
using OnRun = std::function<void(std::int64_t done)>;

// Warm-up runs, then timed runs; returns the timed ones, with the spans of this process's ranks.
std::vector<Timeline> timed_runs(PreparedPlan& prepared, const RunCounts& counts,
                                 const OnRun& on_run = {});

struct CheckedShards {
  std::vector<sim::ShardFacts> shards;  // this process's, by tensor, then ascending by rank
  std::optional<Digest> digest;         // over their bytes in this order; none if they are empty
};
CheckedShards checked_shards(PreparedPlan& prepared, const Plan& plan, sim::PlanPatterns& patterns);

// Collective. At the root: the runs with the spans of all ranks, and all shards by tensor, then
// ascending by rank; elsewhere empty. Throws CheckFailure if they are not those of the plan.
std::vector<Timeline> gathered_runs(Processes& processes, const Plan& plan,
                                    const std::vector<Timeline>& mine);
std::vector<sim::ShardFacts> gathered_shards(Processes& processes, const Plan& plan,
                                             const std::vector<sim::ShardFacts>& mine);

// Runs the plan in the store and sets every shard's expected digest, and `facts.digest` if all
// agree. If the plan needs more bytes than the limits allow, notes that instead. `stored`: as of
// move_and_check.
void compare_with_store(const Plan& plan, const StoredRequests* stored,
                        std::int64_t data_budget_bytes, std::int64_t memory_bytes,
                        sim::ValueFacts& facts);

}  // namespace reshard::tools
