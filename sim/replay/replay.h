// SPDX-License-Identifier: BSD-3-Clause
// Replays a whole trace: plans and proves every redistribution and moves its bytes (each distinct
// one once), times everything together, and compares the time with its lower bound.
//
//   trace -> plans (cached and proved by the studies) -> data (moved and compared in the store)
//         -> workload -> engine -> report
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/plan/executor.h"
#include "core/plan/plan.h"
#include "core/topology/topology.h"
#include "core/traffic/workload.h"
#include "sim/replay/communicator_study.h"
#include "sim/replay/fault_study.h"
#include "sim/replay/reorder.h"
#include "sim/replay/trace_workload.h"
#include "sim/store/data_check.h"
#include "sim/study/losses/late_arrivals.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"
#include "sim/study/tensors/job_facts.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

struct ReplayOptions {
  // Move and compare the bytes of every distinct request, within the budget for all together.
  bool move_bytes = false;
  std::int64_t data_budget_bytes = kDefaultDataBudgetBytes;
  // Fill ReplayReport::path and Timeline::work.
  bool critical_path = false, work = false;
  bool details = true;                 // fill ReplayReport::others and labels
  bool implicit_launch_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT; a trace can set it, too
  // How messages without a communicator get one, and whether creating communicators takes time.
  // Empty: communicators are those that the trace names, and exist from the start.
  std::optional<CommunicatorPolicy> communicators = {};
  bool cold = false;
  bool reorder = false;  // search for an order of launches that ends sooner
  // Reports progress: "planning", "moving data", "timing". May be empty.
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t total)> progress = {};
};

// What the engine records of the trace's run.
inline Recording recording_of(const ReplayOptions& options) {
  return {.spans = true, .path = options.critical_path, .flows = true, .work = options.work};
}

// One operation of the trace and its result. A message is one row, that of its send.
struct ReplayRow {
  std::int64_t line = 0;
  std::string op, id, name;
  // "bf16[8,8] S(0)R on 2x2 -> RS(0)", "message from rank 0 to rank 2"; for a job, job_text().
  std::string text;
  std::string planner;         // of a redistribution: the planner of the plan that ran
  std::string_view transport;  // empty if the operation moves no bytes
  // First start and last end on any rank; none if nothing had to be done.
  std::optional<std::int64_t> start_ps, end_ps;
  std::int64_t bytes_received = 0;    // from other ranks, summed over ranks
  std::int64_t bound_ps = 0;          // of the operation alone
  std::int64_t tensors = 1;           // more for a job
  std::vector<StageRow> stages = {};  // of a job in stages
};

// Sets of redistributions (sim/trace/jobs/joined.h) that ran as one job each, or could.
struct Together {
  struct Lines {
    std::int64_t count;
    std::string lines;  // numbers: "2-4,9"
  };
  std::vector<Lines> sets;  // in line order, at least one
  bool joined = false;
  std::int64_t time_ps = 0;     // of the trace with each set as one line
  std::int64_t count() const {  // of all lines
    std::int64_t sum = 0;
    for (const Lines& set : sets) sum += set.count;
    return sum;
  }
};

struct DispatchReport;  // sim/dispatch

struct ReplayReport {
  // If not empty, the trace cannot run (exit code 1), and nothing below is set.
  std::vector<TraceFinding> findings;

  std::string trace, topology;
  std::int64_t operations = 0;  // both ends of messages counted
  std::string_view transport;   // of all operations; "several" if they differ
  std::int64_t time_ps = 0;
  std::int64_t ideal_time_ps = 0;  // with links alone
  std::int64_t path_bound_ps = 0;  // the longest path, every operation at its own bound
  // The cut bound of what operations together must bring into each set of ranks.
  std::int64_t cut_bound_ps = 0;
  std::int64_t bound_ps = 0;  // the larger of the two
  // "path", "cut", or "none" if the bound is 0.
  const char* limited_by() const {
    return bound_ps == 0 ? "none" : path_bound_ps >= cut_bound_ps ? "path" : "cut";
  }
  std::int64_t bytes_received_total = 0;
  std::int64_t peak_bytes_max = 0;  // of the fullest rank during one redistribution
  std::optional<JobFacts> job;  // of the tensors of all jobs together; none if there are no jobs
  std::vector<ReplayRow> requests;      // redistribute lines, in line order
  std::vector<ReplayRow> others;        // compute, messages, collectives, in line order
  std::int64_t different_requests = 0;  // distinct requests; their plans are proved at full size
  std::int64_t data_checked = 0;        // distinct requests with bytes moved and compared
  std::int64_t data_full_size = 0;      // of these, at full size
  std::int64_t elements_checked = 0;
  std::int64_t data_budget_bytes = 0;  // for each distinct request
  std::vector<LinkUse> links;          // those that carried bytes, most utilised first, then by id
  std::vector<ClassUse> classes;
  std::optional<CacheStatistics> cache;
  std::vector<PhaseTime> phases;  // of the command; empty unless requested
  Digest digest;                  // over the timeline and all data digests

  // For charts: the workload that ran, a label per operation, and its timeline with flows.
  Workload workload;
  std::vector<std::string> labels;  // only with details
  Timeline timeline;
  std::vector<std::int64_t> lines;      // line number, by operation of the trace
  std::vector<LateArrival> late;        // ranks that others waited for
  std::optional<FaultCost> fault_cost;  // if the trace has faults
  // Launches held back by the order, and what another order would gain; with ReplayOptions::reorder
  // also the result of the search. Without it, none for traces of more than kMaxReordered
  // operations.
  static constexpr std::size_t kMaxReordered = 4096;
  std::optional<Reordered> reordered;
  bool searched = false;
  // Lines that were joined, or would be faster if they were.
  std::optional<Together> together;
  // Set if no policy was given and the trace runs as written, but would hang with the communicators
  // that PyTorch creates for messages that name none.
  std::optional<DefaultHang> default_hang;
  // If a policy was given: its result, then those of the other policies.
  std::vector<CommunicatorResult> communicators;
  bool cold = false;
  std::optional<PathFacts> path;                   // with ReplayOptions::critical_path
  std::shared_ptr<const DispatchReport> dispatch;  // of operator calls, if the trace has any
};

// Throws InputError "FILE:LINE: ..." if a rank has no device or a planner refuses a request;
// CheckFailure if data is wrong or the time is below the bound.
ReplayReport replay(const Trace& trace, Studies& studies, const ReplayOptions& options = {});

}  // namespace reshard::sim
