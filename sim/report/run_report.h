// SPDX-License-Identifier: BSD-3-Clause
// The report on one plan: what `reshard plan` and `reshard simulate` say, gathered as plain values
// and written as a table or as JSON.
//
// Everything here was computed elsewhere; this file only chooses, names and formats. JSON fields
// are described in tools/json-schemas.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/bounds/bounds.h"
#include "sim/report/link_use.h"
#include "sim/study/study_cache.h"

namespace reshard::sim {

struct StepRow {
  std::string kind;
  std::vector<int> axes;
  std::string ranks;  // "0-15"
  std::int64_t bytes = 0;
  std::optional<std::int64_t> start_ps, end_ps;  // where it was timed
  std::vector<std::string> why;                  // planner's reasons, where asked for
};

// What became of the bytes.
struct DataFacts {
  bool checked = false;
  bool full_size = false;
  std::string shape;  // as moved: "32,8192,4096"
  std::int64_t elements = 0;
  std::optional<std::string> digest;
  std::string note;  // why nothing was moved, or why it was smaller
};

struct RunReport {
  std::string request, request_name, shape, dtype, mesh, ranks, to_mesh, to_ranks, from, to;
  std::string topology;
  std::string planner;        // whose steps these are
  std::string planner_asked;  // "auto" where it chose `planner`
  std::int32_t topology_devices = 0, request_ranks = 0;
  std::vector<StepRow> steps;
  std::vector<std::string> why;  // reasons for the plan as a whole
  std::vector<Rank> rank_ids;
  std::vector<std::int64_t> received_by_rank, peak_by_rank;
  std::int64_t bytes_received_max = 0, bytes_received_total = 0, bytes_padding_total = 0,
               peak_bytes_max = 0;
  std::int64_t time_ps = 0;
  Bound bound;
  std::optional<double>
      torch_cost_us;  // PyTorch's model of its own greedy planner's steps; none across meshes
  std::vector<ClassBytes> classes;
  std::vector<LinkUse> links;
  std::optional<DataFacts> data;
  std::optional<CacheStatistics> cache;
};

// All that a study tells. Data and PyTorch's cost are added by the caller.
RunReport report_on(Study& study);

// "schema": "reshard.simulate/1".
std::string simulate_json(const RunReport& report);
// "schema": "reshard.plan/1".
std::string plan_json(const RunReport& report);

// `verbose` adds the cache.
std::string simulate_table(const RunReport& report, bool verbose);
// `explain` adds the reasons and PyTorch's cost.
std::string plan_table(const RunReport& report, bool explain, bool verbose);

// For tables. Request, topology and planner:
class Facts;
void add_head(const RunReport& report, Facts& facts);
// A long list of ranks would push the other columns off the screen.
std::string shortened(const std::string& ranks);

// time / bound in ten-thousandths, rounded half up; none at bound 0.
std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps);
// "1.0400"; "-" where there is none.
std::string ratio_text(std::optional<std::int64_t> ratio);

}  // namespace reshard::sim
