// SPDX-License-Identifier: BSD-3-Clause
// The path of a request from plan to results, the same for command line, traces and C API: planned,
// proved, its bytes counted, then timed and bounded on demand, and cached.
//
// Planners, proof, transports and engine do not include each other; this module connects them by
// passing functions.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/digest.h"
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
  // Proves the plan (CheckFailure if it is wrong). Facts in `found` are not computed again. Without
  // a topology there is no time and no bound; without a transport only links take time.
  Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
        PlanFindings found = {}, std::shared_ptr<const Carriage> transport = nullptr,
        Meanwhile meanwhile = Meanwhile::Nothing);
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

struct StudyKey {
  Digest requests, topology;  // the first: of their order, too
  TransportKind transport;
  const PlannerRow* planner;
  MemoryLimits memory;
  friend bool operator==(const StudyKey&, const StudyKey&) = default;
};

struct CacheStatistics {
  std::int64_t hits = 0, misses = 0, size = 0, capacity = 0;
};

// A least-recently-used cache of studies, by requests, planner, topology, transport and memory
// limits.
class StudyCache {
 public:
  // capacity 0 keeps nothing.
  explicit StudyCache(std::int64_t capacity) : capacity_(capacity) {}

  // The cached study, or the result of `make`, which is then cached; a full cache drops the least
  // recently used one. If `make` throws, nothing is cached and the miss still counts.
  std::shared_ptr<Study> get(const StudyKey& key,
                             const std::function<std::shared_ptr<Study>()>& make);
  CacheStatistics statistics() const;
  void clear();

 private:
  struct CachedStudy {
    StudyKey key;
    std::shared_ptr<Study> study;
  };
  using CachedStudies = std::list<CachedStudy>;
  // The set below holds entries but is searched by key, so that each key is stored only once.
  static const StudyKey& key_of(const StudyKey& key) { return key; }
  static const StudyKey& key_of(CachedStudies::iterator entry) { return entry->key; }
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const auto& of) const {
      return to_index(key_of(of).requests.low ^ key_of(of).topology.high);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return key_of(a) == key_of(b); }
  };
  std::int64_t capacity_, hits_ = 0, misses_ = 0;
  CachedStudies entries_;  // most recent first
  // Never iterated: the order would not be deterministic.
  std::unordered_set<CachedStudies::iterator, Hash, Equal> by_key_;
};

// Called when a stage begins: "planning", "proving", "timing".
using OnStage = std::function<void(std::string_view)>;

struct StudyOptions {
  MemoryLimits memory = {};  // of every rank, for every plan
  std::int64_t cache_capacity = 0;
  bool explain = false;  // studies keep the planners' reasons
  // What studies will be asked for: planners that time plans record it while they do.
  Recording record = {};
  Meanwhile meanwhile = Meanwhile::Nothing;
  TransportOptions transport = {};
  bool cold = false;  // `auto` adds the cost of first use (Study::first_use()) when it chooses
  OnStage on_stage = {};
};

class Studies {
 public:
  Studies(std::shared_ptr<const Topology> topology, const PlannerRow& planner,
          StudyOptions options = {});

  // The plan of a job of one request or many, by the transport of the options unless another one is
  // given; with stages if the job has them. Throws InputError if the planner refuses a request, and
  // CheckFailure if its plan is wrong.
  std::shared_ptr<Study> of(std::span<const Request> requests,
                            std::optional<TransportKind> transport = {}, const Stages& stages = {});
  // The same while proofs of large plans may still run, so that others are planned meanwhile.
  std::shared_ptr<Study> not_yet_proved(std::span<const Request> requests,
                                        std::optional<TransportKind> transport,
                                        const Stages& stages);
  std::shared_ptr<Study> of(const Request& request, std::optional<TransportKind> transport = {}) {
    return of(std::span(&request, 1), transport);
  }
  // The plan's time without proof or caching, for comparing many requests of which few will run.
  std::int64_t unproved_time_ps(const Request& request) const;
  // A study of a plan from elsewhere. The memory limit applies to it as well.
  std::shared_ptr<Study> of(std::shared_ptr<const Plan> plan) const;
  // A proved plan for smaller requests by the planner that made `plan`, in its stages, not cached:
  // a data check at reduced size must use the planner that `auto` chose at full size.
  std::shared_ptr<const Plan> like(const Plan& plan, std::span<const Request> smaller) const;

  const std::shared_ptr<const Topology>& topology() const { return topology_; }
  const PlannerRow& planner() const { return planner_; }
  const std::shared_ptr<const Carriage>& transport(
      std::optional<TransportKind> kind = std::nullopt) const {
    return transports_[to_index(kind.value_or(usual_))];
  }
  CacheStatistics cache_statistics() const { return cache_.statistics(); }

 private:
  struct Planned {
    std::shared_ptr<const Plan> plan = {};
    std::shared_ptr<const JobInSeries> job = {};  // if it is planned in series
    PlanFindings found = {};
    std::shared_ptr<const RecordedRun> run = {};  // that found the time, if it was recorded
    Explanation explanation = {};
  };
  void begin(std::string_view stage) const {
    if (options_.on_stage) options_.on_stage(stage);
  }
  std::shared_ptr<const JobInSeries> in_series(const PlannerRow& planner,
                                               std::span<const Request> requests,
                                               const Stages& stages) const;
  Planned planned(const PlannerRow& planner, std::span<const Request> requests,
                  const Stages& stages, const std::shared_ptr<const Carriage>& transport) const;
  std::shared_ptr<Study> found(std::span<const Request> requests,
                               std::optional<TransportKind> transport, const Stages& stages,
                               Meanwhile meanwhile);
  std::shared_ptr<Study> made_or_carried(StudyKey key, std::span<const Request> requests,
                                         const Stages& stages, Meanwhile meanwhile);
  std::shared_ptr<Study> made(const PlannerRow& planner, std::span<const Request> requests,
                              const Stages& stages,
                              const std::shared_ptr<const Carriage>& transport,
                              Meanwhile meanwhile) const;
  void keep_proofs_few(const std::shared_ptr<Study>& last);

  std::shared_ptr<const Topology> topology_;
  std::array<std::shared_ptr<const Carriage>, kTransportKinds> transports_;
  TransportKind usual_;
  const PlannerRow& planner_;
  StudyOptions options_;
  StudyKey key_;              // the fields that all requests share
  StudyCache cache_, alike_;  // by requests; by how they are alike (core/demand/likeness.h)
  std::deque<std::shared_ptr<const Study>> proving_;  // perhaps still
};

}  // namespace reshard::sim
