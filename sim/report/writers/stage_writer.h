// SPDX-License-Identifier: BSD-3-Clause
// Writes the stages of a job.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/json.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// "w1", "w1 and 7 more": the stage's tensors by the first of them.
std::string tensors_text(const StageRow& stage);
// Empty without stages; unless `all`, the first ones of many. Starts with an empty line.
std::string stage_table(const std::vector<StageRow>& stages, bool all, std::size_t width);
Json stages_json(const std::vector<StageRow>& stages);

}  // namespace reshard::sim
