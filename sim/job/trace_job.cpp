// SPDX-License-Identifier: BSD-3-Clause
#include "sim/job/trace_job.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "sim/dispatch/values/values.h"
#include "sim/job/job.h"
#include "sim/trace/jobs/joined.h"

namespace reshard::sim {

namespace {

// Deciding calls compares thousands of candidate redistributions. On more ranks than this, they are
// timed with the `rule` planner: its plans are made at once, and take longer but rank candidates
// the same way; the chosen ones are planned like everything else.
constexpr std::int32_t kRanksPlannedFully = 16;

constexpr std::size_t kMostSetsTried = 8;  // sets of lines that could be joined

std::size_t shards_of(const TraceRedistribute& job) {
  return job.requests->size() * ranks_of(*job.requests).size();
}

// If a trace is one large job, few plans are timed, and planning records what the replay needs.
StudyOptions study_options(const Trace& trace, const TraceJobOptions& options) {
  StudyOptions out = options.studies;
  if (trace.operations.size() != 1) return out;
  const auto* job = std::get_if<TraceRedistribute>(&trace.operations.front().body);
  if (job != nullptr && shards_of(*job) > kMostShardsTried)
    out.record = recording_of(options.replay);
  return out;
}

class TraceJob {
 public:
  TraceJob(Trace& trace, std::shared_ptr<const Topology> topology, const PlannerRow& planner,
           const TraceJobOptions& options)
      : trace_(trace),
        planner_(planner),
        options_(options),
        studies_(std::move(topology), planner, study_options(trace, options)) {}

  ReplayReport run() {
    ReplayReport out;
    std::shared_ptr<DispatchReport> decided;
    std::vector<JoinedSet> sets;
    if (trace_.findings.empty() && (options_.joined || is_quickly_joined()))
      sets = joinable_sets(trace_, options_.replay.implicit_launch_order);
    std::optional<Together> together;
    if (options_.joined && !sets.empty()) {
      together = together_of(sets);
      together->joined = true;
      trace_ = joined(trace_, sets);
    }
    if (has_operators(trace_) || has_places(trace_)) {
      decided = dispatched();
      if (decided->findings.empty() && options_.replay.move_bytes) compute(*decided);
      out.findings = decided->findings;
      if (!out.findings.empty()) return out;
    }
    out = replay(trace_, studies_, options_.replay);
    out.dispatch = std::move(decided);
    if (!out.findings.empty()) return out;
    if (together) together->time_ps = out.time_ps;
    out.together = options_.joined ? std::move(together) : could_be_joined(sets, out.time_ps);
    return out;
  }

 private:
  // Lines that should be joined are looked for only if nothing must be decided again for them.
  bool is_quickly_joined() const {
    return trace_.operations.size() <= ReplayReport::kMaxReordered && !has_operators(trace_);
  }

  Together together_of(const std::vector<JoinedSet>& sets) const {
    Together out;
    for (const JoinedSet& set : sets)
      out.sets.push_back({static_cast<std::int64_t>(set.size()), line_ranges(trace_, set)});
    return out;
  }

  // Those of the sets that make the trace faster: all of them, else the one that gains most.
  std::optional<Together> could_be_joined(std::vector<JoinedSet> sets, std::int64_t now_ps) {
    std::erase_if(sets, [this](const JoinedSet& set) { return shards_of(set) > kMostShardsTried; });
    if (sets.size() > kMostSetsTried) sets.resize(kMostSetsTried);
    if (sets.empty()) return std::nullopt;
    std::optional<Together> best;
    auto offer = [&](const std::vector<JoinedSet>& some) {
      std::int64_t time_ps = std::numeric_limits<std::int64_t>::max();
      try {
        time_ps = time_of(joined(trace_, some), studies_);
      } catch (const InputError&) {  // too many stages
      }
      if (time_ps >= (best ? best->time_ps : now_ps)) return;
      best = together_of(some);
      best->time_ps = time_ps;
    };
    offer(sets);
    if (!best && sets.size() > 1)
      for (const JoinedSet& set : sets) offer({set});
    return best;
  }

  std::size_t shards_of(const JoinedSet& set) const {
    std::size_t tensors = 0;
    std::set<Rank> ranks;
    for (OpId op : set) {
      const auto& job = std::get<TraceRedistribute>(trace_.operations[op].body);
      tensors += job.requests->size();
      for (Rank rank : ranks_of(*job.requests)) ranks.insert(rank);
    }
    return tensors * ranks.size();
  }

  std::shared_ptr<DispatchReport> dispatched() {
    const std::shared_ptr<const Topology>& topology = studies_.topology();
    StudyOptions unlimited = options_.studies;
    unlimited.memory = {};
    Studies quick(topology, find_planner("rule"), unlimited);
    Studies measuring(topology, planner_, options_.studies);
    DispatchOptions dispatch = options_.dispatch;
    dispatch.devices_per_host = topology->devices() / topology->nodes();
    dispatch.gpu = gpu_figures(topology->machine());
    dispatch.time_ps = [&](const Request& request) {
      bool few = request.source().mesh().size() <= kRanksPlannedFully;
      return (few ? studies_ : quick).unproved_time_ps(request);
    };
    dispatch.trace_ps = [&](const Trace& way) { return time_of(way, measuring); };
    dispatch.figures = [&](const Request& request) -> MoveFigures {
      std::shared_ptr<Study> study = studies_.of(request);
      return {study->time_ps(), study->bound().time_ps(), study->bytes().received_total};
    };
    return std::make_shared<DispatchReport>(sim::dispatch(trace_, dispatch));
  }

  // Without details; the largest number if the trace cannot run.
  std::int64_t time_of(const Trace& way, Studies& measuring) const {
    ReplayOptions timing;
    timing.details = false;
    timing.implicit_launch_order = options_.replay.implicit_launch_order;
    timing.communicators = options_.replay.communicators;
    timing.cold = options_.replay.cold;
    try {
      ReplayReport run = replay(way, measuring, timing);
      if (run.findings.empty()) return run.time_ps;
    } catch (const InputError&) {  // for instance a memory limit: not a candidate
    }
    return std::numeric_limits<std::int64_t>::max();
  }

  void compute(DispatchReport& report) {
    std::int64_t effort = values_effort(report);
    if (effort > kMostValuesEffort) {
      report.values_left_out =
          fmt::format("about {:.1e} operations, more than {:.0e}; smaller tensors show the same",
                      static_cast<double>(effort), static_cast<double>(kMostValuesEffort));
      return;
    }
    auto plan_of = [&](const Request& request) { return studies_.of(request)->shared_plan(); };
    check_values(trace_, report, plan_of, [&](std::int64_t done, std::int64_t total) {
      if (options_.replay.progress) options_.replay.progress("computing calls", done, total);
    });
  }

  Trace& trace_;
  const PlannerRow& planner_;
  const TraceJobOptions& options_;
  Studies studies_;
};

}  // namespace

ReplayReport run_trace(Trace& trace, const std::shared_ptr<const Topology>& topology,
                       const PlannerRow& planner, const TraceJobOptions& options) {
  return TraceJob(trace, topology, planner, options).run();
}

}  // namespace reshard::sim
