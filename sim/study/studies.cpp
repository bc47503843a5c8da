// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/studies.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <set>
#include <thread>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/demand/likeness.h"
#include "core/plan/carried_over.h"
#include "core/planners/by_stage.h"
#include "sim/study/proof_ahead.h"
#include "sim/study/recorded_run.h"

namespace reshard::sim {

namespace {

// On more ranks the timelines of rejected candidates would take more memory than the plans; the
// winner is then simulated again if its timeline is needed.
constexpr std::size_t kMaxRanksRecorded = 4096;

}  // namespace

std::shared_ptr<Study> StudyCache::get(const StudyKey& key,
                                       const std::function<std::shared_ptr<Study>()>& make) {
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    ++hits_;
    entries_.splice(entries_.begin(), entries_, *found);
    return entries_.front().study;
  }
  ++misses_;
  std::shared_ptr<Study> study = make();
  if (capacity_ == 0) return study;
  if (static_cast<std::int64_t>(entries_.size()) >= capacity_) {
    by_key_.erase(std::prev(entries_.end()));
    entries_.pop_back();
  }
  entries_.push_front({key, study});
  by_key_.insert(entries_.begin());
  return study;
}

CacheStatistics StudyCache::statistics() const {
  return {hits_, misses_, static_cast<std::int64_t>(entries_.size()), capacity_};
}

void StudyCache::clear() {
  by_key_.clear();
  entries_.clear();
}

Studies::Studies(std::shared_ptr<const Topology> topology, const PlannerRow& planner,
                 StudyOptions options)
    : topology_(std::move(topology)),
      planner_(planner),
      options_(options),
      cache_(options.cache_capacity),
      alike_(options.cache_capacity) {
  transports_ = transports_of();
  usual_ = options.transport.kind.value_or(
      topology_->machine().transport.value_or(TransportKind::Ideal));
  key_ = {{}, topology_->fingerprint(), usual_, &planner, options_.memory};
}

Studies::Transports Studies::transports_of() const {
  Transports out;
  for (std::size_t kind = 0; kind < out.size(); ++kind)
    out[kind] = std::make_shared<const Carriage>(
        topology_,
        TransportOptions{static_cast<TransportKind>(kind), options_.transport.nccl_version});
  return out;
}

namespace {

// A plan can be too large to prove; the error then names its planner.
std::shared_ptr<Study> proved(const PlannerRow& planner, ProofAhead::Proved plan,
                              std::shared_ptr<const Topology> topology, PlanFindings found,
                              std::shared_ptr<const Carriage> transport, Meanwhile meanwhile) {
  try {
    return std::make_shared<Study>(std::move(plan.plan), std::move(topology), std::move(found),
                                   std::move(transport), meanwhile, std::move(plan.proof));
  } catch (const InputError& error) {
    throw error.in(fmt::format("planner {}", planner.name));
  }
}

}  // namespace

// Null if no two tensors can be in a series, or are not to be.
std::shared_ptr<const JobInSeries> Studies::in_series(const PlannerRow& planner,
                                                      std::span<const Request> requests,
                                                      const Stages& stages) const {
  if (options_.memory.free_sources || !plans_only_together(planner, requests, stages))
    return nullptr;
  SeriesJob series = reshard::in_series(requests, stages);
  if (series.requests.size() == requests.size()) return nullptr;
  return std::make_shared<const JobInSeries>(
      JobInSeries{{requests.begin(), requests.end()}, stages, std::move(series)});
}

Studies::Planned Studies::planned(const PlannerRow& planner, std::span<const Request> requests,
                                  const Stages& stages,
                                  const std::shared_ptr<const Carriage>& transport,
                                  const OnStage& on_stage, bool is_alone) const {
  auto begin = [&](std::string_view stage) {
    if (on_stage) on_stage(stage);
  };
  Planned out;
  PlannerInput input;
  input.topology = topology_.get();
  input.memory = options_.memory;
  const Recording what =
      ranks_of(requests).size() <= kMaxRanksRecorded ? options_.record : Recording{};
  // Planners keep timelines; the runs that these are of are found again by them.
  std::vector<std::weak_ptr<const RecordedRun>> runs;
  ProofAhead proofs;
  input.plan_time = [&](const Plan& plan, const Topology& topology,
                        std::int64_t limit_ps) -> PlanTiming {
    begin("timing");
    if (is_alone) proofs.begin(plan);
    auto run = std::make_shared<const RecordedRun>(
        run_of(plan, topology, what, limit_ps, transport->carrier()));
    begin("planning");
    std::int64_t time_ps = run->timeline.end_ps;
    if (!what.spans) return time_ps;
    runs.push_back(run);
    return {time_ps, {run, &run->timeline}};
  };
  input.steps_in_turn = transport->carrier() != nullptr && transport->carrier()->in_turn();
  if (options_.cold)
    input.first_use_ps = [costs = setup_costs_of(*topology_)](const Plan& plan) {
      return first_use_of(plan, CommunicatorPolicy::Eager, costs).first_use_ps();
    };
  input.explanation = options_.explain ? &out.explanation : nullptr;
  input.found = &out.found;
  begin("planning");
  out.job = in_series(planner, requests, stages);
  out.plan = proofs.of(
      out.job ? make_plan_by_stage(planner, out.job->series.requests, out.job->series.stages, input)
              : make_plan_by_stage(planner, requests, stages, input));
  if (out.found.timing && out.found.timing->timeline)
    for (const std::weak_ptr<const RecordedRun>& kept : runs)
      if (auto run = kept.lock(); run && &run->timeline == out.found.timing->timeline.get())
        out.run = run;
  return out;
}

std::shared_ptr<Study> Studies::made(const PlannerRow& planner, Planned is,
                                     const std::shared_ptr<const Carriage>& transport,
                                     Meanwhile meanwhile) const {
  begin("proving");
  auto study =
      proved(planner, std::move(is.plan), topology_, std::move(is.found), transport, meanwhile);
  if (options_.explain) study->set_explanation(std::move(is.explanation));
  study->expect(options_.record);
  study->job_ = std::move(is.job);
  if (is.run) study->runs_.push_back({options_.record, std::move(is.run)});
  return study;
}

std::int64_t Studies::unproved_time_ps(const Request& request) const {
  Planned is = planned(planner_, std::span(&request, 1), {}, transport(), options_.on_stage, false);
  if (is.found.timing) return is.found.timing->time_ps;
  return run_of(*is.plan.plan, *topology_, {}, kNoTimeLimit, transport()->carrier())
      .timeline.end_ps;
}

std::shared_ptr<Study> Studies::of(std::span<const Request> requests,
                                   std::optional<TransportKind> transport, const Stages& stages) {
  std::shared_ptr<Study> out = found(requests, transport, stages, options_.meanwhile);
  out->require_proof();  // also that of a study which was cached before
  return out;
}

std::shared_ptr<Study> Studies::not_yet_proved(std::span<const Request> requests,
                                               std::optional<TransportKind> transport,
                                               const Stages& stages) {
  std::shared_ptr<Study> out = found(requests, transport, stages, Meanwhile::Callers);
  keep_proofs_few(out);
  return out;
}

// A proof takes memory, so no more run than there are processors.
void Studies::keep_proofs_few(const std::shared_ptr<Study>& last) {
  if (proving_.empty() || proving_.back() != last) proving_.push_back(last);
  while (proving_.size() > std::max(1U, std::thread::hardware_concurrency())) {
    proving_.front()->wait_for_proof();
    proving_.pop_front();
  }
}

std::shared_ptr<Study> Studies::found(std::span<const Request> requests,
                                      std::optional<TransportKind> transport, const Stages& stages,
                                      Meanwhile meanwhile) {
  StudyKey key = key_of(requests, transport, stages);
  return cache_.get(key, [&] { return made_or_carried(key, requests, stages, meanwhile); });
}

StudyKey Studies::key_of(std::span<const Request> requests, std::optional<TransportKind> transport,
                         const Stages& stages) const {
  StudyKey key = key_;
  key.requests = fingerprint_of(requests, stages);
  key.transport = transport.value_or(usual_);
  return key;
}

Studies::Planned Studies::taken_or_planned(const StudyKey& key, std::span<const Request> requests,
                                           const Stages& stages) {
  if (auto ahead = ahead_.extract({key.requests, key.transport}); !ahead.empty())
    if (Planned made = ahead.mapped().get(); made.plan.plan) return made;
  return planned(planner_, requests, stages, transport(key.transport), options_.on_stage, true);
}

// Each plan once, and only the first of those that are alike.
std::vector<const Studies::Wanted*> Studies::not_yet_planned(std::span<const Wanted> wanted) const {
  std::vector<const Wanted*> out;
  std::set<std::pair<Digest, TransportKind>> seen;
  for (const Wanted& each : wanted) {
    StudyKey key = key_of(each.requests, each.transport, each.stages);
    if (cache_.holds(key) || !seen.insert({key.requests, key.transport}).second) continue;
    if (!options_.explain) {
      key.requests = likeness_of(each.requests, each.stages, *topology_);
      if (alike_.holds(key) || !seen.insert({key.requests, key.transport}).second) continue;
    }
    out.push_back(&each);
  }
  return out;
}

// Plans to be made, by whichever thread comes to them first.
struct Studies::ToPlan {
  // Copies, because the caller may be gone when another thread comes to them.
  struct Job {
    std::vector<Request> requests;
    Stages stages;
    TransportKind transport;
    std::promise<Planned> promise = {};
  };
  std::vector<Job> jobs = {};
  std::atomic<std::size_t> next{0}, done{0};
  std::atomic<bool> stopped{false};
};

void Studies::plan_ahead(std::span<const Wanted> wanted, const OnPlan& on_plan) {
  const std::vector<const Wanted*> todo = not_yet_planned(wanted);
  const std::size_t threads =
      std::min<std::size_t>(todo.size(), std::max(1U, std::thread::hardware_concurrency()));
  if (threads < 2) return;
  stop_planning();
  to_plan_ = std::make_shared<ToPlan>();
  for (const Wanted* each : todo) {
    ToPlan::Job& job =
        to_plan_->jobs.emplace_back(ToPlan::Job{{each->requests.begin(), each->requests.end()},
                                                each->stages,
                                                each->transport.value_or(usual_)});
    StudyKey key = key_of(job.requests, job.transport, job.stages);
    ahead_.insert_or_assign({key.requests, key.transport}, job.promise.get_future());
  }
  for (std::size_t t = 1; t < threads; ++t)
    planning_.push_back(std::async(std::launch::async | std::launch::deferred,
                                   [this, jobs = to_plan_] { make_plans(*jobs, {}); }));
  make_plans(*to_plan_, on_plan);
}

void Studies::make_plans(ToPlan& all, const OnPlan& on_plan) const {
  // Transports keep what they compute about ranks, so each thread has its own.
  const Transports own = transports_of();
  for (std::size_t i = all.next++; i < all.jobs.size(); i = all.next++) {
    ToPlan::Job& job = all.jobs[i];
    if (on_plan) on_plan(all.done, all.jobs.size());
    try {
      job.promise.set_value(all.stopped ? Planned()
                                        : planned(planner_, job.requests, job.stages,
                                                  own[to_index(job.transport)], {}, false));
    } catch (...) {
      all.stopped = true;
      job.promise.set_exception(std::current_exception());
    }
    ++all.done;
  }
}

void Studies::stop_planning() {
  if (to_plan_) to_plan_->stopped = true;
  planning_.clear();  // waits
}

Studies::~Studies() { stop_planning(); }

// Reasons can name ranks, and timelines do; so a plan is carried over alone.
std::shared_ptr<Study> Studies::made_or_carried(StudyKey key, std::span<const Request> requests,
                                                const Stages& stages, Meanwhile meanwhile) {
  const std::shared_ptr<const Carriage>& by = transport(key.transport);
  auto make = [&, exactly = key] {
    return made(planner_, taken_or_planned(exactly, requests, stages), by, meanwhile);
  };
  if (options_.explain) return make();
  key.requests = likeness_of(requests, stages, *topology_);
  bool is_new = false;
  std::shared_ptr<Study> alike = alike_.get(key, [&] {
    is_new = true;
    return make();
  });
  if (is_new) return alike;
  begin("proving");
  std::shared_ptr<const JobInSeries> job =
      alike->job_ ? in_series(planner_, requests, stages) : nullptr;
  auto plan = std::make_shared<const Plan>(
      carried_over(*alike->plan_, job ? std::span<const Request>(job->series.requests) : requests));
  auto study =
      proved(planner_, {std::move(plan), {}}, topology_, {alike->bytes_, alike->needs_, {}}, by,
             meanwhile == Meanwhile::Callers ? meanwhile : Meanwhile::Nothing);
  study->job_ = std::move(job);
  study->expect(options_.record);
  return study;
}

std::shared_ptr<Study> Studies::of(std::shared_ptr<const Plan> plan) const {
  PlanFindings found{count_bytes(*plan), {}, {}};
  if (options_.memory.any()) {
    found.needs = memory_needs(*plan);
    require_fit("the plan", *found.needs, options_.memory);
  }
  auto study = std::make_shared<Study>(std::move(plan), topology_, std::move(found), transport());
  study->expect(options_.record);
  return study;
}

std::shared_ptr<const Plan> Studies::like(const Plan& plan,
                                          std::span<const Request> smaller) const {
  // A plan of several planners has a name that is none's: then the studies' planner makes it again.
  const PlannerRow* maker = &planner_;
  for (const PlannerRow& row : planners())
    if (row.name == plan.planner) maker = &row;
  Planned is = planned(*maker, smaller, plan.stages, transport(), options_.on_stage, true);
  return made(*maker, std::move(is), transport(), Meanwhile::Nothing)->shared_plan();
}

}  // namespace reshard::sim
