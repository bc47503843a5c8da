// SPDX-License-Identifier: BSD-3-Clause
// The way of a request through the house, the same for command line, traces and C API: planned,
// proved, counted, and what is asked for beside; cached.
//
// The parts of the house do not see each other; here they are handed to each other as functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/base/digest.h"
#include "core/bounds/bounds.h"
#include "core/plan/executor.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/topology/topology.h"
#include "core/traffic/accounting.h"
#include "sim/study/run_facts.h"
#include "sim/transport/communicators.h"
#include "sim/transport/transport.h"

namespace reshard::sim {

// All that is known of one plan on one topology, each fact found once: proof and bytes when the
// study is made, time, timeline and bound when they are first asked for. Whoever asks twice, the
// cache's next user too, gets what was found the first time.
class Study {
 public:
  // Proves the plan (CheckFailure where it is wrong); `found` is not found again. Without a
  // topology it has no time and no bound; without a transport links alone take time.
  Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
        PlanFindings found = {}, std::shared_ptr<const Carriage> transport = nullptr);

  const Plan& plan() const { return *plan_; }
  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  const Topology& topology() const { return *topology_; }
  const PlanBytes& bytes() const { return bytes_; }
  // Padding received from other ranks, by step; its sum.
  const std::vector<std::int64_t>& padding_per_step() const { return proof_.padding_bytes; }
  std::int64_t padding_total() const;

  // Of the plan alone, on its topology. CheckFailure where the time is below the bound, as soon as
  // both are known: then the engine or the bound is wrong.
  std::int64_t time_ps();
  const Timeline& timeline();  // with spans
  // The same with every flow and Timeline::work, which takes longer: found at every call.
  Timeline flows() const;
  // The same without what software costs: what links alone take.
  std::int64_t ideal_time_ps();
  TransportKind transport() const { return transport_->kind(); }
  // What the time was waited for.
  const PathFacts& critical_path();
  const Bound& bound();
  void set_bound(const Bound& bound);  // where it is at hand: all plans of a request share it

  // Making its communicators and meeting its peers, by the usual policy (eager).
  CommunicatorUse first_use() const;

  const std::optional<Explanation>& explanation() const { return explanation_; }
  void set_explanation(Explanation explanation) { explanation_ = std::move(explanation); }

  // The same plan elsewhere, by that topology's own transport. What the topology does not change is
  // kept; all, where it is the same, and the transport.
  Study on(std::shared_ptr<const Topology> topology) const;

 private:
  void check_time() const;

  std::shared_ptr<const Plan> plan_;
  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const Carriage> transport_;  // none without a topology
  ProofResult proof_;
  PlanBytes bytes_;
  std::optional<PlanTiming> timing_;
  std::optional<std::int64_t> ideal_time_ps_;
  std::optional<PathFacts> path_;
  std::optional<Bound> bound_;
  std::optional<Explanation> explanation_;
};

// Time of one plan alone, with its timeline where it shall be `recorded`.
PlanTiming timed(const Plan& plan, const Topology& topology, bool recorded,
                 std::int64_t limit_ps = kNoTimeLimit, Carrier* carrier = nullptr);

struct StudyKey {
  Digest request, topology;
  TransportKind transport;
  std::int32_t planner;             // index in planners()
  std::int64_t memory_limit_bytes;  // -1: none
  friend bool operator==(const StudyKey&, const StudyKey&) = default;
};

struct CacheStatistics {
  std::int64_t hits = 0, misses = 0, size = 0, capacity = 0;
};

// The studies used last, by (request, planner, topology, transport, memory limit).
class StudyCache {
 public:
  // capacity 0 keeps nothing.
  explicit StudyCache(std::int64_t capacity) : capacity_(capacity) {}

  // The cached study, or what `make` returns (then kept, the least recently used dropped). `make`
  // may throw; nothing is kept then and the miss counts.
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
  // Of an entry, those of its key, which stands nowhere else.
  static const StudyKey& key_of(const StudyKey& key) { return key; }
  static const StudyKey& key_of(CachedStudies::iterator entry) { return entry->key; }
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const auto& of) const {
      return to_index(key_of(of).request.low ^ key_of(of).topology.high);
    }
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return key_of(a) == key_of(b); }
  };
  std::int64_t capacity_, hits_ = 0, misses_ = 0;
  CachedStudies entries_;  // most recent first
  // Looked up only, never iterated.
  std::unordered_set<CachedStudies::iterator, Hash, Equal> by_key_;
};

// Told what is being done: "planning", "proving", "timing".
using OnStage = std::function<void(std::string_view)>;

struct StudyOptions {
  std::optional<std::int64_t> memory_limit_bytes = {};  // of every plan, per rank
  std::int64_t cache_capacity = 0;
  bool explain = false;           // studies keep the planners' reasons
  bool record_timelines = false;  // Study::timeline() will be asked for: planners that time plans
                                  // record what they see
  TransportOptions transport = {};
  bool cold = false;  // first use counts: where `auto` chooses, and in Study::first_use()
  OnStage on_stage = {};
};

class Studies {
 public:
  Studies(std::shared_ptr<const Topology> topology, const PlannerRow& planner,
          StudyOptions options = {});

  // By the transport of the options, or another. Throws InputError where the planner refuses,
  // CheckFailure where it is wrong.
  std::shared_ptr<Study> of(const Request& request, std::optional<TransportKind> transport = {});
  // How long the plan would take, for comparing many requests of which few are met: it is neither
  // proved nor kept.
  std::int64_t unproved_time_ps(const Request& request) const;
  // Of a plan that came from elsewhere; it must fit the memory limit as a made one must.
  std::shared_ptr<Study> of(std::shared_ptr<const Plan> plan) const;
  // The proved plan of the strategy that made `plan` for a smaller request, outside the cache: what
  // `auto` took for the full size is what must be checked.
  std::shared_ptr<const Plan> like(const Plan& plan, const Request& smaller) const;

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
    PlanFindings found = {};
    Explanation explanation = {};
  };
  void begin(std::string_view stage) const {
    if (options_.on_stage) options_.on_stage(stage);
  }
  Planned planned(const PlannerRow& planner, const Request& request,
                  const std::shared_ptr<const Carriage>& transport) const;
  std::shared_ptr<Study> made(const PlannerRow& planner, const Request& request,
                              const std::shared_ptr<const Carriage>& transport) const;

  std::shared_ptr<const Topology> topology_;
  std::array<std::shared_ptr<const Carriage>, kTransportKinds> transports_;
  TransportKind usual_;
  const PlannerRow& planner_;
  StudyOptions options_;
  StudyKey key_;  // of all requests: what they do not change
  StudyCache cache_;
};

}  // namespace reshard::sim
