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
#include "core/stored/stored_requests.h"
#include "core/topology/topology.h"
#include "core/traffic/accounting.h"
#include "core/traffic/workload.h"
#include "sim/picture/markup.h"
#include "sim/report/validate_report.h"
#include "sim/study/run_facts.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

// Of every panel's drawing: its width, and the room left of it for names.
inline constexpr double kPanelWidth = 960, kPanelLeft = 148;

struct TimelineFacts {
  const Workload& workload;
  const std::vector<std::string>& labels;  // by operation; can be shorter
  const Timeline& timeline;
  const PathFacts* path = nullptr;  // the critical path, if known
};

// What every rank does over time: a lane per rank, a slice per part of a step or operation,
// coloured by kind. Also a legend, and a sentence if not everything is shown. The script can zoom
// into it; without the script, hovering over a slice shows what it is.
void draw_timeline(Node panel, const TimelineFacts& facts);

// The traffic matrix of senders by receivers: darker cells carry more bytes, and bars along the
// sides show what each sends and receives in total. Many ranks are grouped, by whole nodes if
// possible. The ranks of `flows` must have devices in the topology.
void draw_traffic(Node panel, std::span<const FlowSpan> flows, const Topology& topology);

// Link utilisation over time. Since most links are similar, each kind ("nic.out") has one strip
// with its fullest link and the mean of all that carried bytes. If the two differ, a few links do
// the work of many. Uses Timeline::work and Timeline::resources.
void draw_links(Node panel, const Timeline& timeline, const Topology& topology);

// Peak memory of a rank: its source, its destination, and its temporaries at their peak.
struct RankMemory {
  Rank rank;
  std::int64_t source_bytes, destination_bytes, temporary_bytes;
  std::int64_t peak_bytes() const { return source_bytes + destination_bytes + temporary_bytes; }
};

// By slot. `bytes` must be those of the plan.
std::vector<RankMemory> memory_of(const Plan& plan, const PlanBytes& bytes);
// For each rank of a workload, its memory in the plan in which its peak is greatest.
std::vector<RankMemory> greatest_memory(const Workload& workload);

// Peak memory as bars; ranks with the same memory share one.
void draw_memory(Node panel, const std::vector<RankMemory>& ranks);

// What `auto` compared: the time of every planner's plan, the bound, and why a plan was not chosen.
// Nothing if there were no alternatives.
void draw_alternatives(Node panel, const std::vector<Explanation::Alternative>& alternatives,
                       std::int64_t bound_ps);

// Tensors that are reported together: a kind of tensor, a stage of a job.
struct TensorBar {
  std::string name;
  TensorUse use;
  std::int64_t bound_ps;  // alone
};
// When each moves in a run of `end_ps`, and the time that it would take alone. If there are many,
// only the first are drawn.
void draw_tensor_bars(Node panel, const std::vector<TensorBar>& bars, std::int64_t end_ps);
// The same for the kinds of tensors of a job, with a table of their figures.
void draw_kinds(Node panel, const std::vector<GroupFacts>& kinds, std::int64_t end_ps);

// The contents of the ranks' buffers, before and after: a bar per rank, its sections in memory
// order, coloured by tensor. Buffers with names that differ only in numbers are drawn once; at most
// eight are drawn on each side.
void draw_buffers(Node panel, const StoredRequests& stored);

// The measured and the predicted time of each step of a plan on a backend. If the prediction is for
// another machine, times cannot be compared; then each step is drawn as a share of its total.
void draw_measured(Node panel, const ValidateReport& report);

}  // namespace reshard::sim
