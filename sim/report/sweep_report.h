// SPDX-License-Identifier: BSD-3-Clause
// The report of `sweep`: planners compared over many requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/layout/request.h"
#include "sim/report/ratios.h"
#include "sim/report/table.h"
#include "sim/study/losses/lost_time.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

struct SweepRow {
  std::string mesh, from, to, planner;
  // None if the planner refuses the request.
  std::optional<std::int64_t> time_ps, bytes_received_max;
  std::int64_t bound_ps = 0;
  Bandwidths rates;
  std::string refusal;
  std::optional<std::int64_t> first_use_ps = {};  // with --cold
  // For p2p, with --cold: after how many uses its total time, first use included, is the least of
  // all planners of the sweep but auto; none: never.
  std::optional<std::int64_t> won_back_after = {};
  std::optional<LostTime> lost = {};  // for the worst pair of a planner on a mesh
};
// Sets won_back_after in the rows of one pair.
void win_back(std::span<SweepRow> rows);

std::string pair_text(const SweepRow& row);  // "S(0)R -> RS(0)"

// One planner on one mesh, over the pairs with a bound above 0 that it does not refuse.
struct SweepSummary {
  std::string mesh, planner;
  std::int64_t pairs = 0, refused = 0, at_bound = 0;  // at_bound: ratio exactly 1
  std::optional<std::int64_t> geometric_mean_e4;
  const SweepRow* worst = nullptr;  // compared without rounding; the first of equals
};

struct SweepReport {
  Shape shape;
  DType dtype{};
  std::string topology;  // of the last mesh if they differ
  std::vector<std::string> meshes;
  // Requests; those that at least one planner planned; pairs that DTensor itself forbids.
  std::int64_t pairs = 0, planned = 0, forbidden = 0;
  bool cold = false;
  std::vector<std::string> planners;
  std::vector<SweepRow> rows;     // by pair, then by planner
  std::vector<PhaseTime> phases;  // of the command; empty unless requested
};

// One per mesh and planner, in the order of `meshes`, then of `planners`.
std::vector<SweepSummary> summarize(const SweepReport& report);

// "schema": "reshard.sweep/1". `verbose` adds a row per pair with one column per planner.
std::string sweep_json(const SweepReport& report);
std::string sweep_table(const SweepReport& report, bool verbose, std::size_t width = kTableWidth);
// RFC 4180 with a header row.
std::string sweep_csv(const SweepReport& report);

}  // namespace reshard::sim
