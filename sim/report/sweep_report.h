// SPDX-License-Identifier: BSD-3-Clause
// Planners side by side over many requests: rows, a summary per planner, and their table, CSV and
// JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reshard::sim {

struct SweepRow {
  std::string mesh, from, to, planner;
  // None where the planner refuses the request.
  std::optional<std::int64_t> time_ps, bytes_received_max;
  std::int64_t bound_ps = 0;
  std::string refusal;
};

// Over the pairs with a bound above 0 that the planner answers.
struct SweepSummary {
  std::string planner;
  std::int64_t pairs = 0, refused = 0, at_bound = 0;  // at_bound: ratio exactly 1
  std::optional<double> geometric_mean;               // for printing only
  std::optional<std::int64_t> worst_ratio_e4;
  std::string worst_pair;  // "S(0)R -> RS(0) on 4x4"
};

struct SweepReport {
  std::string shape, dtype, topology;  // the topology of the last mesh where they differ
  std::vector<std::string> meshes;
  // Requests, those of them that some planner answered, and pairs that DTensor itself forbids.
  std::int64_t pairs = 0, planned = 0, forbidden = 0;
  std::vector<std::string> planners;
  std::vector<SweepRow> rows;
};

// One per planner, in the order of `planners`. The worst pair is decided exactly, ties by the first
// row.
std::vector<SweepSummary> summarize(const SweepReport& report);

// RFC 4180 with a header row.
std::string sweep_csv(const SweepReport& report);
// "schema": "reshard.sweep/1".
std::string sweep_json(const SweepReport& report);
// The summary; `verbose` adds a row per pair with one column per planner.
std::string sweep_table(const SweepReport& report, bool verbose);

}  // namespace reshard::sim
