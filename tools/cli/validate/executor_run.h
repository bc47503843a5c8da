// SPDX-License-Identifier: BSD-3-Clause
// A prepared plan, filled, run and compared: this process's part, and how the root gets everyone's.
//
// Each process checks its own shards against the request's definition, element by element, and
// sends the root a digest and the first difference, never the bytes: those of all ranks need not
// fit in one process. Where they do, the root runs the same plan in the store and compares digests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/plan/executor.h"
#include "sim/report/report.h"
#include "sim/store/data_check.h"

namespace reshard::tools {

struct RunCounts {
  std::int64_t warm_up = 2, iterations = 9;
};

// Told, between runs, how many are done.
using OnRun = std::function<void(std::int64_t done)>;

// Warm-up runs, then the timed ones, with the spans of this process's ranks.
std::vector<Timeline> timed_runs(PreparedPlan& prepared, const RunCounts& counts,
                                 const OnRun& on_run = {});

struct CheckedShards {
  std::vector<sim::ShardFacts> shards;  // of this process, tensor by tensor, ascending by rank
  std::optional<Digest> digest;  // over their bytes, in this order; none where they hold nothing
};
CheckedShards checked_shards(PreparedPlan& prepared, const Plan& plan,
                             const sim::PlanPatterns& patterns);

// Collective. At the root: the runs with the spans of all ranks, and all shards, tensor by tensor
// and ascending by rank; empty elsewhere. CheckFailure where they are not those of the plan.
std::vector<Timeline> gathered_runs(Processes& processes, const Plan& plan,
                                    const std::vector<Timeline>& mine);
std::vector<sim::ShardFacts> gathered_shards(Processes& processes, const Plan& plan,
                                             const std::vector<sim::ShardFacts>& mine);

// Runs the plan in the store and sets the expected digest of every shard; `facts.digest` where all
// agree. Where the plan needs more bytes than the limits allow, notes that instead.
void compare_with_store(const Plan& plan, std::int64_t data_budget_bytes, std::int64_t memory_bytes,
                        sim::ValueFacts& facts);

}  // namespace reshard::tools
