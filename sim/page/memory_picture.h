// SPDX-License-Identifier: BSD-3-Clause
// What each rank must hold at most at one time: its source, its destination and temporaries at
// their peak. Ranks that hold the same are one bar.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/traffic/accounting.h"
#include "core/traffic/workload.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

struct RankMemory {
  Rank rank;
  std::int64_t source_bytes, destination_bytes, temporary_bytes;
  std::int64_t peak_bytes() const { return source_bytes + destination_bytes + temporary_bytes; }
};

// By slot. `bytes` of the plan.
std::vector<RankMemory> memory_of(const Plan& plan, const PlanBytes& bytes);
// Of each rank of a workload the plan in which it holds most.
std::vector<RankMemory> greatest_memory(const Workload& workload);

// Into a panel.
void draw_memory(Node panel, const std::vector<RankMemory>& ranks);

}  // namespace reshard::sim
