// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/recorded_run.h"

#include <utility>

#include "sim/study/limit_log.h"
#include "sim/study/link_rates.h"

namespace reshard::sim {

namespace {

// Both logs, each only if it is wanted.
class Logs : public FlowObserver {
 public:
  Logs(LinkRates* rates, LimitLog* limits) : rates_(rates), limits_(limits) {}

  void begun(std::int32_t flow) override {
    if (limits_) limits_->begun(flow);
  }
  void held(std::int32_t flow, std::optional<ResourceId> by) override {
    if (limits_) limits_->held(flow, by);
  }
  void solved(std::int64_t now_ps, const FairShare& shares,
              const FairShare::Changes& changes) override {
    if (rates_) rates_->solved(now_ps, shares, changes);
    if (limits_) limits_->solved(now_ps, shares, changes);
  }
  void finished(std::int64_t now_ps, const FairShare& shares, std::int32_t flow,
                Int128 excess) override {
    if (rates_) rates_->finished(now_ps, shares, flow, excess);
  }

 private:
  LinkRates* rates_;
  LimitLog* limits_;
};

}  // namespace

RecordedRun record(const Workload& workload, const Topology& topology, const Recording& what,
                   EngineOptions options) {
  LinkRates rates(what.work ? topology.resource_count() : 0);
  LimitLog limits;
  WaitLog waits;
  Logs logs(what.work ? &rates : nullptr, what.path ? &limits : nullptr);
  options.record_spans = what.spans;
  options.record_flows = what.flows;
  if (what.path) options.waits = &waits;
  if (what.path || what.work) options.observer = &logs;
  RecordedRun out;
  out.timeline = run(workload, topology, options);
  if (what.work) out.timeline.work = rates.take();
  bool ended = out.timeline.end_ps <= options.limit_ps;
  if (what.path && ended && !waits.full() && !limits.full())
    out.path = path_of(waits.chain(), limits, topology);
  return out;
}

}  // namespace reshard::sim
