// SPDX-License-Identifier: BSD-3-Clause
// Writes what reports show about jobs of many tensors, for one plan and for traces.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/study/losses/lost_time.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

// A row per group of tensors, after a blank line; unless `all`, of many only the first, and the sum
// of the others. `what` they are: "kind".
std::string groups_table(std::span<const GroupFacts> groups, std::string_view what, bool all,
                         std::size_t width);

// "kinds" and "full_links".
void add_job(const JobFacts& job, std::int64_t time_ps, Json& out);

// Which links are full, and what else costs time.
void add_limits(const JobFacts& job, const LostTime& lost, std::int64_t time_ps, Facts& facts);

}  // namespace reshard::sim
