// SPDX-License-Identifier: BSD-3-Clause
// A whole trace: every redistribution planned (each different one once), proved and its bytes
// moved; everything timed together; the result beside the least time that physics allows.
//
//   trace -> plans (handed in: cached and proved) -> data (handed in: moved and compared)
//         -> workload -> engine -> report
//
// Planner, cache and store are functions of the caller, so that replay knows none of them.
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
#include "sim/study/late_arrivals.h"
#include "sim/study/run_facts.h"
#include "sim/study/study.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

struct ReplayHooks {
  // The study of a request at full size; asked once per redistribution, so that the cache sees
  // what the job does.
  std::function<std::shared_ptr<const Study>(const Request& request,
                                             std::optional<TransportKind> transport)>
      study;
  // Moves and compares the bytes, within the budget; asked once per different request. Not set: no
  // bytes are moved.
  std::function<DataReport(const std::shared_ptr<const Plan>& plan, std::int64_t budget_bytes)>
      check_data;
  std::function<CacheStatistics()> cache_statistics;  // may be empty
  // What carries operations that name a transport, and those that name none. Empty: links alone.
  std::function<std::shared_ptr<const Carriage>(std::optional<TransportKind> transport)> carriage;
  // What is found where it is asked for: ReplayReport::path, Timeline::work.
  bool critical_path = false, work = false;
  bool details = true;                 // ReplayReport::others and labels
  bool implicit_launch_order = false;  // NCCL_LAUNCH_ORDER_IMPLICIT; also where the trace says it
  // How messages without a communicator get one, and whether making them takes time. Empty: as the
  // trace says, and all are there.
  std::optional<CommunicatorPolicy> communicators = {};
  bool cold = false;
  bool reorder = false;  // look for an order of launches that ends sooner
  // How far the work is, for people who wait: "planning", "moving data", "timing". May be empty.
  std::function<void(std::string_view stage, std::int64_t done, std::int64_t total)> progress;
};

// One operation of the trace and what came of it. A message is one row, that of its send.
struct ReplayRow {
  std::int64_t line = 0;
  std::string op, id, name;
  std::string text;            // "bf16[8,8] S(0)R on 2x2 -> RS(0)", "message from rank 0 to rank 2"
  std::string planner;         // redistribute: whose steps were run
  std::string_view transport;  // what carried it; empty: nothing had to be carried
  // First start and last end on any rank; none where nothing had to be done.
  std::optional<std::int64_t> start_ps, end_ps;
  std::int64_t bytes_received = 0;  // from other ranks, summed
  std::int64_t bound_ps = 0;        // of the operation alone
};

struct DispatchReport;  // sim/dispatch

struct ReplayReport {
  // Not empty: the trace cannot run (exit code 1), and nothing below is set.
  std::vector<TraceFinding> findings;

  std::string trace, topology;
  std::int64_t operations = 0;  // both ends of messages counted
  std::string_view transport;   // of all operations; "several" where they differ
  std::int64_t time_ps = 0;
  std::int64_t ideal_time_ps = 0;  // of links alone
  std::int64_t path_bound_ps = 0;  // longest path, every operation at its own bound
  std::int64_t cut_bound_ps =
      0;  // cut bound of what all operations together must bring into each set of ranks
  std::int64_t bound_ps = 0;  // the larger
  // "path", "cut", "none" at bound 0.
  const char* limited_by() const {
    return bound_ps == 0 ? "none" : path_bound_ps >= cut_bound_ps ? "path" : "cut";
  }
  std::int64_t bytes_received_total = 0;
  std::vector<ReplayRow> requests;      // redistribute lines, in line order
  std::vector<ReplayRow> others;        // compute, messages, collectives, in line order; and
  std::int64_t different_requests = 0;  // plans proved, at full size
  std::int64_t data_checked = 0;        // different requests whose bytes were moved and compared
  std::int64_t data_full_size = 0;      // of these, at full size
  std::int64_t elements_checked = 0;
  std::int64_t data_budget_bytes = 0;  // of each different request
  std::vector<LinkUse> links;          // those that carried bytes, most utilised first, then by id
  std::vector<ClassUse> classes;
  std::optional<CacheStatistics> cache;
  std::vector<PhaseTime> phases;  // of the command; empty where nobody asked
  Digest digest;                  // over the timeline and all data digests

  // For drawing: the workload that ran, a label per operation, and its timeline with flows.
  Workload workload;
  std::vector<std::string> labels;  // these where details were asked for
  Timeline timeline;
  std::vector<std::int64_t> lines;      // by operation
  std::vector<LateArrival> late;        // ranks that others waited for
  std::optional<FaultCost> fault_cost;  // where the trace has faults
  // Launches that wait for others' turns, and what another order would give; the search for the
  // best one where it was asked for. None for traces of more than kMaxReordered operations.
  static constexpr std::size_t kMaxReordered = 4096;
  std::optional<Reordered> reordered;
  bool searched = false;
  // Where none was asked for: messages that name no communicator would wait for ever as PyTorch
  // makes theirs, though they do not as the trace says it.
  std::optional<DefaultHang> default_hang;
  // Where a policy was asked for: what it gives, then what the others would.
  std::vector<CommunicatorResult> communicators;
  bool cold = false;
  std::optional<PathFacts> path;                   // where it was asked for
  std::shared_ptr<const DispatchReport> dispatch;  // of calls, where the trace has some
};

// Throws InputError "FILE:LINE: ..." where a rank has no device or a planner refuses a request;
// CheckFailure where data is wrong or the time is below the bound.
ReplayReport replay(const Trace& trace, const Topology& topology, const ReplayHooks& hooks,
                    std::int64_t data_budget_bytes);

}  // namespace reshard::sim
