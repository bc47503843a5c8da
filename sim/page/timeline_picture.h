// SPDX-License-Identifier: BSD-3-Clause
// What every rank does when: a lane per rank, a slice per part of a step or operation, coloured by
// its kind. The script zooms into it; without it, resting on a slice tells what it is.
#pragma once

#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/traffic/workload.h"
#include "sim/picture/markup.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

struct TimelineFacts {
  const Workload& workload;
  const std::vector<std::string>& labels;  // by operation; may be shorter
  const Timeline& timeline;
  const PathFacts* path = nullptr;  // what the whole waits for, where it is known
};

// Into a panel: the picture, its legend, and a sentence where not all is shown.
void draw_timeline(Node panel, const TimelineFacts& facts);

}  // namespace reshard::sim
