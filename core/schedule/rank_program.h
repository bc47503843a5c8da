// SPDX-License-Identifier: BSD-3-Clause
// What one rank does, in order: a function of the plan alone. Every backend runs it; the C API
// shows it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// The rank's part of a step, as positions in the step's own lists.
struct RankStep {
  StepId step;
  // Positions in the program of the steps that must be done before; ascending, all earlier. Steps
  // in which the rank has no part are passed over.
  std::vector<std::int32_t> after;
  // Copy, fill, reduce: parts [first_part, first_part + part_count).
  std::uint32_t first_part = 0, part_count = 0;
  // Exchange: messages sent and received, each ascending by peer.
  std::vector<std::uint32_t> sends, receives;
  // Collective: the rank's group and its place in it.
  std::int32_t group = -1, member = -1;
};

struct RankProgram {
  Slot slot = -1;
  std::vector<RankStep> steps;  // only those with a part, in listed order
};

// One program per slot given (ascending, each once), found in one pass over the plan. The plan must
// be proved.
std::vector<RankProgram> rank_programs(const Plan& plan, std::span<const Slot> slots);

}  // namespace reshard
