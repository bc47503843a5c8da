// SPDX-License-Identifier: BSD-3-Clause
// What happens to a plan, the same for command line, traces and C API: it is proved, its bytes are
// counted, and it is timed and bounded on demand.
//
// Planners, proof, transports and engine do not include each other; this module connects them by
// passing functions.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/bounds/bounds.h"
#include "core/plan/executor.h"
#include "core/plan/written_out.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/topology/topology.h"
#include "core/traffic/accounting.h"
#include "sim/study/recording.h"
#include "sim/study/run_facts.h"
#include "sim/study/tensors/tensor_use.h"
#include "sim/transport/communicators.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

struct RecordedRun;  // sim/study/recorded_run.h

// What is computed while another processor proves a large plan.
enum class Meanwhile : std::uint8_t {
  Nothing,  // the proof is waited for
  Report,   // the facts of a report
  Callers   // whatever the caller does until it calls require_proof()
};

// Everything known about one plan on one topology, each fact computed once: proof and bytes on
// construction, the rest on first use. If the facts of a report are wanted and the plan is large,
// they are computed on construction as well, while another processor proves the plan. Later
// callers, including later users of a cached study, get the stored result.
class Study {
 public:
  // Proves the plan (CheckFailure if it is wrong), unless `proof` does: a proof of this plan that
  // has begun. Facts in `found` are not computed again. Without
  // a topology there is no time and no bound; without a transport only links take time.
  Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
        PlanFindings found = {}, std::shared_ptr<const Carriage> transport = nullptr,
        Meanwhile meanwhile = Meanwhile::Nothing, std::shared_future<ProofResult> proof = {});
  // Waits for the proof. Throws what it throws. Nothing may be reported before.
  void require_proof() const { proof_.get(); }
  void wait_for_proof() const { proof_.wait(); }  // does not throw

  // The plan of the job's tensors. If they were planned in series, it is written out and proved on
  // the first call.
  const Plan& plan() { return *shared_plan(); }
  const std::shared_ptr<const Plan>& shared_plan();
  // The plan as it was made, with series of tensors (core/plan/series.h) if the job is large. It
  // has the same steps and messages as plan().
  const Plan& plan_in_series() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan_in_series() const { return plan_; }
  // The job's tensors, and their stages.
  std::span<const Request> tensors() const {
    return job_ ? std::span<const Request>(job_->tensors) : plan_->tensors;
  }
  const Stages& stages() const { return job_ ? job_->stages : plan_->stages; }
  // The use of each of the job's tensors in a run in which the plan is operation `op`. Needs
  // Timeline::spans.
  IndexVector<TensorId, TensorUse> tensor_uses(const Timeline& timeline, OpId op = OpId{0}) const;
  const Topology& topology() const { return *topology_; }
  const PlanBytes& bytes() const { return bytes_; }
  const MemoryNeeds& needs();
  // Padding bytes received from other ranks, by step; and their sum.
  std::int64_t padding_total() const;

  // The plan alone on its topology. Once both time and bound are known, throws CheckFailure if the
  // time is below the bound: then the engine or the bound is wrong.
  std::int64_t time_ps();
  // A run of the plan alone, with at least this recorded.
  const RecordedRun& recorded(Recording what);
  const Timeline& timeline();  // with spans
  const Timeline& flows();     // with spans, Timeline::flows and Timeline::work
  // The time with links alone, without software costs.
  std::int64_t ideal_time_ps();
  TransportKind transport() const { return transport_->kind(); }
  const PathFacts& critical_path();
  const Bound& bound();
  void set_bound(const Bound& bound);  // if already known: all plans of a request share it
  // Announces what will be requested, so that the engine runs once for all of it.
  void expect(const Recording& more) { wanted_ = wanted_.with(more); }

  // The cost of creating its communicators and connecting its peers, under the default policy
  // (eager).
  CommunicatorUse first_use() const;

  const std::optional<Explanation>& explanation() const { return explanation_; }
  void set_explanation(Explanation explanation) { explanation_ = std::move(explanation); }

  // Whether this is the study's topology, and the topology's own transport is the study's.
  bool is_on(const Topology& topology) const;
  // The same plan on another topology, by that topology's own transport. Keeps the facts that do
  // not depend on either, and all of them if topology and transport are the same as here.
  Study on(std::shared_ptr<const Topology> topology) const;

 private:
  friend class Studies;
  struct KnownRun {
    Recording what;
    std::shared_ptr<const RecordedRun> run;
  };
  void check_time() const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const JobInSeries> job_;   // null: the plan is of the job's tensors
  std::shared_ptr<const Plan> written_out_;  // null: not asked for yet
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const Carriage> transport_;  // null without a topology
  std::shared_future<ProofResult> proof_;
  PlanBytes bytes_;
  std::optional<MemoryNeeds> needs_;
  std::optional<std::int64_t> time_ps_;
  Recording wanted_;
  std::vector<KnownRun> runs_;  // none is dropped: references to timelines stay valid
  std::optional<std::int64_t> ideal_time_ps_;
  std::optional<PathFacts> path_;
  std::optional<Bound> bound_;
  std::optional<Explanation> explanation_;
};

// One plan alone. A run that exceeds `limit_ps` stops early, and its time is then some value above
// the limit. Without a carrier only links take time.
RecordedRun run_of(const Plan& plan, const Topology& topology, const Recording& what = {},
                   std::int64_t limit_ps = kNoTimeLimit, Carrier* carrier = nullptr);

}  // namespace reshard::sim
