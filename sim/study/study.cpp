// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/study.h"

#include <future>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/bounds/order_bound.h"
#include "core/demand/likeness.h"
#include "core/plan/carried_over.h"
#include "core/planners/by_stage.h"
#include "core/traffic/workload.h"
#include "sim/study/recorded_run.h"

namespace reshard::sim {

namespace {

// On more ranks the timelines of rejected candidates would take more memory than the plans; the
// winner is then simulated again if its timeline is needed.
constexpr std::size_t kMaxRanksRecorded = 4096;

// From so many shards on, a proof takes longer than a thread to begin it, by far.
constexpr std::size_t kShardsOfLargePlan = 512;

std::shared_ptr<const Carriage> links_alone(std::shared_ptr<const Topology> topology) {
  return std::make_shared<const Carriage>(std::move(topology),
                                          TransportOptions{TransportKind::Ideal, {}});
}

}  // namespace

RecordedRun run_of(const Plan& plan, const Topology& topology, const Recording& what,
                   std::int64_t limit_ps, Carrier* carrier) {
  // The workload only borrows the plan.
  Workload workload =
      workload_of(std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(), &plan));
  try {
    return record(workload, topology, what, {.limit_ps = limit_ps, .carriers = {carrier}});
  } catch (const InputError& error) {
    throw error.in(fmt::format("the time of {}'s plan", plan.planner));
  }
}

Study::Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
             PlanFindings found, std::shared_ptr<const Carriage> transport, Meanwhile meanwhile)
    : plan_(std::move(plan)),
      topology_(std::move(topology)),
      transport_(transport || !topology_ ? std::move(transport) : links_alone(topology_)),
      needs_(found.needs),
      time_ps_(found.timing ? std::optional(found.timing->time_ps) : std::nullopt) {
  const bool is_large = plan_->tensors.size() * plan_->ranks.size() >= kShardsOfLargePlan;
  if (!is_large || !topology_) meanwhile = Meanwhile::Nothing;
  proof_ = std::async(meanwhile == Meanwhile::Nothing ? std::launch::deferred
                                                      : std::launch::async | std::launch::deferred,
                      [proved = plan_] { return prove(*proved); })
               .share();
  // Only planners' own plans are looked at before they are proved.
  if (meanwhile == Meanwhile::Nothing) require_proof();
  bytes_ = found.bytes ? *std::move(found.bytes) : count_bytes(*plan_);
  if (meanwhile != Meanwhile::Report) return;
  needs();
  if (this->transport() != TransportKind::Ideal) ideal_time_ps();
  bound();
  require_proof();
}

const std::shared_ptr<const Plan>& Study::shared_plan() {
  if (!job_) return plan_;
  if (!written_out_) {
    auto plan = std::make_shared<const Plan>(written_out(*plan_, *job_));
    prove(*plan);
    written_out_ = std::move(plan);
  }
  return written_out_;
}

IndexVector<TensorId, TensorUse> Study::tensor_uses(const Timeline& timeline, OpId op) const {
  return sim::tensor_uses(*plan_, timeline, op, job_ ? &job_->series : nullptr);
}

std::int64_t Study::padding_total() const {
  const std::vector<std::int64_t>& padding = proof_.get().padding_bytes;
  return std::accumulate(padding.begin(), padding.end(), std::int64_t{0});
}

std::int64_t Study::time_ps() {
  if (!time_ps_) {
    time_ps_ = run_of(*plan_, *topology_, {}, kNoTimeLimit, transport_->carrier()).timeline.end_ps;
    check_time();
  }
  return *time_ps_;
}

const RecordedRun& Study::recorded(Recording what) {
  for (const KnownRun& known : runs_)
    if (known.what.covers(what)) return *known.run;
  what = what.with(wanted_);
  runs_.push_back({what, std::make_shared<const RecordedRun>(run_of(
                             *plan_, *topology_, what, kNoTimeLimit, transport_->carrier()))});
  const RecordedRun& out = *runs_.back().run;
  time_ps_ = out.timeline.end_ps;
  check_time();
  return out;
}

const Timeline& Study::timeline() { return recorded({.spans = true}).timeline; }

const Timeline& Study::flows() {
  return recorded({.spans = true, .flows = true, .work = true}).timeline;
}

std::int64_t Study::ideal_time_ps() {
  if (transport() == TransportKind::Ideal) return time_ps();
  if (!ideal_time_ps_)
    ideal_time_ps_ =
        run_of(*plan_, *topology_, {}, kNoTimeLimit, transport_->ideal()).timeline.end_ps;
  return *ideal_time_ps_;
}

CommunicatorUse Study::first_use() const {
  return first_use_of(*plan_, CommunicatorPolicy::Eager, setup_costs_of(*topology_));
}

const PathFacts& Study::critical_path() {
  if (!path_) path_ = path_facts(recorded({.path = true}).path, *topology_);
  return *path_;
}

const Bound& Study::bound() {
  if (!bound_) set_bound(bound_of(tensors(), stages(), *topology_, switches_of(transport())));
  return *bound_;
}

const MemoryNeeds& Study::needs() {
  if (!needs_) needs_ = memory_needs(*plan_);
  return *needs_;
}

void Study::set_bound(const Bound& bound) {
  bound_ = bound;
  check_time();
}

void Study::check_time() const {
  RESHARD_CHECK(!time_ps_ || !bound_ || *time_ps_ >= bound_->time_ps(),
                requests_text(*plan_) + " by " + plan_->planner + " takes " +
                    duration_text(*time_ps_) + ", less than its bound " +
                    duration_text(bound_->time_ps()));
}

bool Study::is_on(const Topology& topology) const {
  return topology_ && topology.fingerprint() == topology_->fingerprint() &&
         transport() == topology.machine().transport.value_or(TransportKind::Ideal);
}

Study Study::on(std::shared_ptr<const Topology> topology) const {
  Study out = *this;
  bool same = is_on(*topology);
  out.topology_ = std::move(topology);
  if (same) return out;
  out.transport_ = std::make_shared<const Carriage>(out.topology_, TransportOptions{});
  out.ideal_time_ps_.reset();
  out.path_.reset();
  out.time_ps_.reset();
  out.runs_.clear();
  out.bound_.reset();
  return out;
}

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
  for (std::size_t kind = 0; kind < transports_.size(); ++kind)
    transports_[kind] = std::make_shared<const Carriage>(
        topology_,
        TransportOptions{static_cast<TransportKind>(kind), options.transport.nccl_version});
  usual_ = options.transport.kind.value_or(
      topology_->machine().transport.value_or(TransportKind::Ideal));
  key_ = {{}, topology_->fingerprint(), usual_, &planner, options_.memory};
}

namespace {

// A plan can be too large to prove; the error then names its planner.
std::shared_ptr<Study> proved(const PlannerRow& planner, std::shared_ptr<const Plan> plan,
                              std::shared_ptr<const Topology> topology, PlanFindings found,
                              std::shared_ptr<const Carriage> transport, Meanwhile meanwhile) {
  try {
    return std::make_shared<Study>(std::move(plan), std::move(topology), std::move(found),
                                   std::move(transport), meanwhile);
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
                                  const std::shared_ptr<const Carriage>& transport) const {
  Planned out;
  PlannerInput input;
  input.topology = topology_.get();
  input.memory = options_.memory;
  const Recording what =
      ranks_of(requests).size() <= kMaxRanksRecorded ? options_.record : Recording{};
  // Planners keep timelines; the runs that these are of are found again by them.
  std::vector<std::weak_ptr<const RecordedRun>> runs;
  input.plan_time = [&](const Plan& plan, const Topology& topology,
                        std::int64_t limit_ps) -> PlanTiming {
    begin("timing");
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
  out.plan = std::make_shared<const Plan>(
      out.job ? make_plan_by_stage(planner, out.job->series.requests, out.job->series.stages, input)
              : make_plan_by_stage(planner, requests, stages, input));
  if (out.found.timing && out.found.timing->timeline)
    for (const std::weak_ptr<const RecordedRun>& kept : runs)
      if (auto run = kept.lock(); run && &run->timeline == out.found.timing->timeline.get())
        out.run = run;
  return out;
}

std::shared_ptr<Study> Studies::made(const PlannerRow& planner, std::span<const Request> requests,
                                     const Stages& stages,
                                     const std::shared_ptr<const Carriage>& transport,
                                     Meanwhile meanwhile) const {
  Planned is = planned(planner, requests, stages, transport);
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
  Planned is = planned(planner_, std::span(&request, 1), {}, transport());
  if (is.found.timing) return is.found.timing->time_ps;
  return run_of(*is.plan, *topology_, {}, kNoTimeLimit, transport()->carrier()).timeline.end_ps;
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
  StudyKey key = key_;
  key.requests = fingerprint_of(requests, stages);
  key.transport = transport.value_or(usual_);
  return cache_.get(key, [&] { return made_or_carried(key, requests, stages, meanwhile); });
}

// Reasons can name ranks, and timelines do; so a plan is carried over alone.
std::shared_ptr<Study> Studies::made_or_carried(StudyKey key, std::span<const Request> requests,
                                                const Stages& stages, Meanwhile meanwhile) {
  const std::shared_ptr<const Carriage>& by = transport(key.transport);
  auto make = [&] { return made(planner_, requests, stages, by, meanwhile); };
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
  auto study = proved(planner_, std::move(plan), topology_, {alike->bytes_, alike->needs_, {}}, by,
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
  return made(*maker, smaller, plan.stages, transport(), Meanwhile::Nothing)->shared_plan();
}

}  // namespace reshard::sim
