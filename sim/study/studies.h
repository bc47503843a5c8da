// SPDX-License-Identifier: BSD-3-Clause
// Studies by request, planner, topology and transport: each is made once and cached, those of jobs
// that are alike are carried over, and many can be planned at once, on all processors.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/planners/planner.h"
#include "core/topology/topology.h"
#include "sim/study/proof_ahead.h"
#include "sim/study/study.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

struct StudyKey {
  Digest requests, topology;  // `requests` covers their stages, too
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
  bool holds(const StudyKey& key) const { return by_key_.contains(key); }  // does not count
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
  Studies(const Studies&) = delete;
  Studies& operator=(const Studies&) = delete;
  ~Studies();

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
  // The requests of a later call to of() or not_yet_proved().
  struct Wanted {
    std::span<const Request> requests;
    std::optional<TransportKind> transport;
    const Stages& stages;
  };
  // Makes the plans that these calls will need, on all processors, and returns when there is none
  // left to begin: the calls wait for those that others still make. A request that cannot be
  // planned is refused by these calls; after it no more plans are begun here. `on_plan` is called
  // from this thread.
  using OnPlan = std::function<void(std::size_t done, std::size_t total)>;
  void plan_ahead(std::span<const Wanted> wanted, const OnPlan& on_plan);
  // The plan's time without proof or caching, for comparing many requests when few will run.
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
    ProofAhead::Proved plan = {};
    std::shared_ptr<const JobInSeries> job = {};  // if it is planned in series
    PlanFindings found = {};
    std::shared_ptr<const RecordedRun> run = {};  // that found the time, if it was recorded
    Explanation explanation = {};
  };
  struct ToPlan;
  void begin(std::string_view stage) const {
    if (options_.on_stage) options_.on_stage(stage);
  }
  using Transports = std::array<std::shared_ptr<const Carriage>, kTransportKinds>;
  Transports transports_of() const;
  StudyKey key_of(std::span<const Request> requests, std::optional<TransportKind> transport,
                  const Stages& stages) const;
  std::vector<const Wanted*> not_yet_planned(std::span<const Wanted> wanted) const;
  Planned taken_or_planned(const StudyKey& key, std::span<const Request> requests,
                           const Stages& stages);
  std::shared_ptr<const JobInSeries> in_series(const PlannerRow& planner,
                                               std::span<const Request> requests,
                                               const Stages& stages) const;
  // `is_alone`: the other processors are free.
  Planned planned(const PlannerRow& planner, std::span<const Request> requests,
                  const Stages& stages, const std::shared_ptr<const Carriage>& transport,
                  const OnStage& on_stage, bool is_alone) const;
  std::shared_ptr<Study> found(std::span<const Request> requests,
                               std::optional<TransportKind> transport, const Stages& stages,
                               Meanwhile meanwhile);
  std::shared_ptr<Study> made_or_carried(StudyKey key, std::span<const Request> requests,
                                         const Stages& stages, Meanwhile meanwhile);
  std::shared_ptr<Study> made(const PlannerRow& planner, Planned is,
                              const std::shared_ptr<const Carriage>& transport,
                              Meanwhile meanwhile) const;
  void make_plans(ToPlan& all, const OnPlan& on_plan) const;  // `on_plan` may be empty
  void stop_planning();
  void keep_proofs_few(const std::shared_ptr<Study>& last);

  std::shared_ptr<const Topology> topology_;
  Transports transports_;
  TransportKind usual_;
  const PlannerRow& planner_;
  StudyOptions options_;
  StudyKey key_;              // the fields that all requests share
  StudyCache cache_, alike_;  // by requests; by how they are alike (core/demand/likeness.h)
  std::deque<std::shared_ptr<const Study>> proving_;  // perhaps still being proved
  std::shared_ptr<ToPlan> to_plan_;
  // By fingerprint of requests. No plan: planning was stopped before it.
  std::map<std::pair<Digest, TransportKind>, std::future<Planned>> ahead_;
  std::vector<std::future<void>> planning_;  // other threads
};

}  // namespace reshard::sim
