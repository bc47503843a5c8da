// SPDX-License-Identifier: BSD-3-Clause
// Writes what the judge found, as text and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/judge/fault_groups.h"
#include "sim/check/check_file.h"
#include "sim/check/lost_ranks.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

// The cost on a topology of copies without faults, compared with a plan of ours.
struct CopiesCost {
  RunReport given;
  std::string plan_by;  // the planner of that plan
  std::int64_t ours_ps = 0;
};

struct CheckReport {
  CheckedCopies copies;
  std::vector<Finding> findings;  // the largest first; empty: proved
  std::optional<CopiesCost> cost = {};
  std::string no_cost = {};  // the reason if the cost was requested but is not given
  // If requested: what would be lost without each rank.
  std::optional<std::vector<LostRank>> without = {};
};

// Throws InputError if there is nothing to judge: no buffers of side "to".
CheckReport report_of(CheckedCopies copies);
// "rank 2: k_proj[0:4,:] in 'qkv' gets q_proj[4:8,:] of rank 0; line 8; looks like: ..." for the
// first place.
std::string finding_text(const CheckReport& report, const Finding& finding);
// "3 findings, 24 elements", or "proved".
std::string verdict(const CheckReport& report);
// Shows at most `rows` findings.
std::string check_text(const CheckReport& report, std::size_t rows, std::size_t width);
std::string check_json(const CheckReport& report);

}  // namespace reshard::sim
