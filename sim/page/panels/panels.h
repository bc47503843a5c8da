// SPDX-License-Identifier: BSD-3-Clause
// The pictures of a page, each drawn into a panel by one call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "core/planners/planner.h"
#include "core/topology/topology.h"
#include "core/traffic/accounting.h"
#include "core/traffic/workload.h"
#include "sim/picture/markup.h"
#include "sim/report/report.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// What every rank does when: a lane per rank, a slice per part of a step or operation, coloured by
// its kind. The script zooms into it; without it, resting on a slice tells what it is.

struct TimelineFacts {
  const Workload& workload;
  const std::vector<std::string>& labels;  // by operation; may be shorter
  const Timeline& timeline;
  const PathFacts* path = nullptr;  // what the whole waits for, where it is known
};

// Into a panel: the picture, its legend, and a sentence where not all is shown.
void draw_timeline(Node panel, const TimelineFacts& facts);

// Who sent how much to whom: a square of senders by receivers, the darker the more, with what each
// sends and receives in all along its sides. Many ranks are taken together, whole nodes if that is
// enough. `flows` between ranks that have devices of the topology.
void draw_traffic(Node panel, std::span<const FlowSpan> flows, const Topology& topology);

// How full links are over time. Links are many and mostly alike: of every kind ("nic.out") a strip
// shows its fullest link and the mean of all that carried something. Where the two differ, few
// links do what many could. Of the timeline `work` and `resources` are used.
void draw_links(Node panel, const Timeline& timeline, const Topology& topology);

// What each rank must hold at most at one time: its source, its destination and temporaries at
// their peak. Ranks that hold the same are one bar.

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

// What `auto` weighed: the time of every planner's plan beside the bound, and why it is not the one
// that was taken. Nothing where nothing was weighed.
void draw_alternatives(Node panel, const std::vector<Explanation::Alternative>& alternatives,
                       std::int64_t bound_ps);

// What each step of a plan took on a backend beside what was predicted. Where the prediction is for
// another machine their lengths say nothing of each other: then what share of its whole each step
// is.
void draw_measured(Node panel, const ValidateReport& report);

}  // namespace reshard::sim
