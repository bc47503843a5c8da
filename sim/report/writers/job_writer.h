// SPDX-License-Identifier: BSD-3-Clause
// Writes what reports show about jobs of many tensors, for one plan and for traces.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sim/report/json.h"
#include "sim/report/table.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

// A row per kind of tensor, after a blank line; unless `all`, of many only the first, and the sum
// of the others.
std::string kinds_table(std::span<const KindFacts> kinds, bool all, std::size_t width);

// "kinds" and "full_links".
void add_job(const JobFacts& job, std::int64_t time_ps, Json& out);

}  // namespace reshard::sim
