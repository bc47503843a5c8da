// SPDX-License-Identifier: BSD-3-Clause
// The report of `plan` and `simulate` on one plan: its contents as values, and their writers.
//
// Everything here is computed elsewhere; this file selects it. The fields of JSON and their order
// are described in tools/json-schemas.md. writers/perfetto.h draws timelines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/planners/planner.h"
#include "core/stored/stored_requests.h"
#include "core/topology/topology.h"
#include "core/torch/known_defects.h"
#include "sim/report/ratios.h"
#include "sim/report/table.h"
#include "sim/study/losses/lost_time.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

struct StepRow {
  std::string_view kind;  // kind_text
  std::vector<int> axes;
  std::vector<Rank> ranks;
  std::int64_t bytes = 0;
  std::optional<std::int64_t> start_ps, end_ps;  // first start and last end on any rank
  std::vector<std::string> why = {};             // the planner's reasons, if requested
  std::int32_t stream = 0;                       // of the plan's

  std::optional<std::int64_t> duration_ps() const;
};

// A KV cache that a plan moves.
struct KvFacts {
  struct Side {
    std::string parallel;       // "tp=4 pp=2"
    std::string ranks;          // that have the cache: "0-7"
    std::int64_t copies;        // ranks that have an element
    std::string form;           // "kv,blocks,tokens,heads,dim"
    std::int64_t block_tokens;  // on a rank
    std::int64_t blocks, pool;  // of the request, of a rank
  };
  std::string cache;  // "llama: 80 layers, 8 KV heads of 128 channels, bf16"
  std::int64_t tokens = 0, token_bytes = 0, bytes = 0;
  Side from, to;
  std::vector<std::string> assumed;
};
// Lines "name   value" of tables and pages.
std::vector<std::pair<std::string, std::string>> kv_lines(const KvFacts& kv);

struct RunReport {
  RunReport(std::span<const Request> tensors_in, std::vector<Rank> ranks_in)
      : tensors(std::vector<Request>(tensors_in.begin(), tensors_in.end())),
        ranks(std::move(ranks_in)) {}

  IndexVector<TensorId, Request> tensors;  // at least one
  std::vector<Rank> ranks;                 // of all tensors, ascending
  // The buffers that the requests were made from, which must outlive the report; null: none.
  const StoredRequests* buffers = nullptr;
  std::optional<KvFacts> kv = {};  // of a KV cache, if the plan moves one
  std::string topology;
  std::int32_t topology_devices = 0;
  std::vector<std::string> assumed = {};  // what the topology assumes because its file omits it
  std::string planner;                    // that made the steps
  std::string planner_asked;              // "auto" if it chose `planner`
  IndexVector<StepId, StepRow> steps;
  std::vector<StageRow> stages;                        // of a job in stages
  std::vector<std::string> why;                        // reasons for the plan as a whole
  std::vector<Explanation::Alternative> alternatives;  // what `auto` compared, if requested
  PlanBytes bytes;                                     // by rank in the order of `ranks`
  MemoryNeeds needs;
  bool frees_sources = false;
  std::int32_t streams = 1;
  std::int64_t padding_total = 0;
  std::string_view transport;
  std::int64_t time_ps = 0;        // by that transport
  std::int64_t ideal_time_ps = 0;  // with links alone
  Bound bound;
  // If several plans are given and planning their tensors together is faster.
  struct AsOne {
    std::string planner;
    std::int64_t time_ps;
  };
  std::optional<AsOne> as_one;
  // The cost of the steps of PyTorch's own planner by PyTorch's model, summed over tensors, and
  // which planner that is; none across meshes.
  std::optional<double> torch_cost_us;
  std::string_view torch_planner;  // "greedy", "min-cost", "greedy and min-cost"
  std::vector<TorchDefect> torch_defects;
  std::vector<ClassUse> classes;
  std::vector<LinkUse> links;  // the busiest, descending
  // If there are several tensors.
  struct JobReport {
    JobFacts facts;
    LostTime lost;
  };
  std::optional<JobReport> job;
  std::optional<CommunicatorUse> first_use;  // with --cold
  std::optional<PathFacts> path;
  std::optional<DataReport> data;
  std::optional<CacheStatistics> cache;
  std::vector<PhaseTime> phases;  // of the command; empty unless requested
};

// The request, one line "name: f32[..] .." per tensor, numbered if there are several; for many
// tensors, one line about all of them.
std::vector<std::string> request_lines(const RunReport& report);

// Everything that comes from a study. The caller adds critical path, data, cache and PyTorch's
// cost.
RunReport report_on(Study& study);

// For the report's tensors and bytes.
Bandwidths bandwidths_of(const RunReport& report, std::int64_t time_ps);

// ---- the writers; tables are at most `width` wide if possible

// "schema": "reshard.plan/1". In the table, `explain` adds the reasons, `verbose` the cache, and
// either of them the critical path.
std::string plan_json(const RunReport& report);
std::string plan_table(const RunReport& report, bool explain, bool verbose,
                       std::size_t width = kTableWidth);

// "schema": "reshard.simulate/1". `verbose` adds the cache and the critical path.
std::string simulate_json(const RunReport& report);
std::string simulate_table(const RunReport& report, bool verbose, std::size_t width = kTableWidth);
// The lower half of simulate_table(): from the bytes received to the busiest links.
std::string result_table(const RunReport& report, bool verbose, std::size_t width = kTableWidth);

}  // namespace reshard::sim
