// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/study.h"

#include <numeric>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/schedule/workload.h"
#include "sim/network/engine.h"

namespace reshard::sim {

PlanTiming timed(const Plan& plan, const Topology& topology, bool recorded) {
  // The workload only borrows the plan.
  Workload workload =
      workload_of(std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(), &plan));
  Timeline timeline = run(workload, topology, {.record_flows = recorded, .record_spans = recorded});
  std::int64_t time_ps = timeline.end_ps;
  if (!recorded) return time_ps;
  return {time_ps, std::make_shared<const Timeline>(std::move(timeline))};
}

Study::Study(std::shared_ptr<const Plan> plan, std::shared_ptr<const Topology> topology,
             PlanFindings found)
    : plan_(std::move(plan)),
      topology_(std::move(topology)),
      proof_(prove(*plan_)),
      bytes_(found.bytes ? *std::move(found.bytes) : count_bytes(*plan_)),
      timing_(std::move(found.timing)) {}

std::int64_t Study::padding_total() const {
  return std::accumulate(proof_.padding_bytes.begin(), proof_.padding_bytes.end(), std::int64_t{0});
}

std::int64_t Study::time_ps() {
  if (!timing_) {
    timing_ = timed(*plan_, *topology_, false);
    check_time();
  }
  return timing_->time_ps;
}

const Timeline& Study::timeline() {
  if (!timing_ || !timing_->timeline) {
    timing_ = timed(*plan_, *topology_, true);
    check_time();
  }
  return *timing_->timeline;
}

const Bound& Study::bound() {
  if (bound_) return *bound_;
  // Of several tensors the greatest holds for all.
  Bound greatest = bound_of(plan_->tensors.front(), *topology_);
  for (std::size_t t = 1; t < plan_->tensors.size(); ++t)
    if (Bound bound = bound_of(plan_->tensors[t], *topology_); bound.time_ps() > greatest.time_ps())
      greatest = bound;
  set_bound(greatest);
  return *bound_;
}

void Study::set_bound(const Bound& bound) {
  bound_ = bound;
  check_time();
}

void Study::check_time() const {
  RESHARD_CHECK(!timing_ || !bound_ || timing_->time_ps >= bound_->time_ps(),
                requests_text(*plan_) + " by " + plan_->planner + " takes " +
                    duration_text(timing_->time_ps) + ", less than its bound " +
                    duration_text(bound_->time_ps()));
}

Study Study::on(std::shared_ptr<const Topology> topology) const {
  Study out = *this;
  bool same = topology_ && topology->fingerprint() == topology_->fingerprint();
  out.topology_ = std::move(topology);
  if (same) return out;
  out.timing_.reset();
  out.bound_.reset();
  return out;
}

}  // namespace reshard::sim
