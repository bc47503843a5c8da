// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/study.h"

#include <future>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/bounds/order_bound.h"
#include "core/traffic/workload.h"
#include "sim/study/recorded_run.h"

namespace reshard::sim {

namespace {

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
             PlanFindings found, std::shared_ptr<const Carriage> transport, Meanwhile meanwhile,
             std::shared_future<ProofResult> proof)
    : plan_(std::move(plan)),
      topology_(std::move(topology)),
      transport_(transport || !topology_ ? std::move(transport) : links_alone(topology_)),
      needs_(found.needs),
      time_ps_(found.timing ? std::optional(found.timing->time_ps) : std::nullopt) {
  const bool is_large = plan_->tensors.size() * plan_->ranks.size() >= kShardsOfLargePlan;
  if (!is_large || !topology_) meanwhile = Meanwhile::Nothing;
  if (!proof.valid())
    proof = std::async(meanwhile == Meanwhile::Nothing ? std::launch::deferred
                                                       : std::launch::async | std::launch::deferred,
                       [proved = plan_] { return prove(*proved); })
                .share();
  proof_ = std::move(proof);
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

}  // namespace reshard::sim
