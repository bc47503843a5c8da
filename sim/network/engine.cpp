// SPDX-License-Identifier: BSD-3-Clause
// The event loop.
//
// An instant is processed completely before rates are solved: transfers that finish now, latencies
// and sleeps that end now, and all that starts because of them, including what takes no time at
// all. Only then do the flows share again and does the clock move, to the earlier of the next
// finish and the next known event. So a thousand transfers that end together cost one solution, and
// the order within an instant cannot change a rate.
#include "sim/network/engine.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/network/flows.h"
#include "sim/network/interference.h"
#include "sim/network/program.h"
#include "sim/network/shortcuts/least_end.h"
#include "sim/network/shortcuts/whole_steps.h"
#include "sim/sharing/queues.h"

namespace reshard::sim {

namespace {

// 4 GiB of timeline.
constexpr std::size_t kMaxRecordedFlows = std::size_t{1} << 26;

void check_recorded(std::size_t flows) {
  if (flows >= kMaxRecordedFlows)
    throw InputError(
        fmt::format("expected a timeline of at most {} transfers, found more (a ring of n ranks "
                    "has n(n-1), an all_reduce twice that; use fewer ranks)",
                    kMaxRecordedFlows));
}

class Engine {
 public:
  Engine(const Workload& workload, const Topology& topology, const EngineOptions& options)
      : options_(options),
        workload_(workload),
        topology_(topology),
        interference_(topology, !options.faults.empty()),
        flows_(topology, options.observer,
               options.observer == nullptr && options.waits == nullptr && interference_.none()),
        whole_steps_(topology),
        program_(
            workload, topology.devices(),
            {.spans = options.record_spans ? &timeline_.spans : nullptr,
             .carriers = options.carriers,
             .waits = options.waits,
             .take_whole = [this](const Transfers& transfers, std::span<const Rank> ranks,
                                  bool together) { return take_whole(transfers, ranks, together); },
             .order = options.order,
             .launch_queue =
                 topology.machine().figure(Figure::LaunchQueue).value_or(0) / kRatioOne}) {}

  Timeline run();

 private:
  // An event at a known time: a flow's latency ends; a sole flow ends (`sequence`); a part wakes
  // from its wait (flow -1), where for a compute that may be slowed only the last announced end
  // counts (`sequence`); or a fault.
  struct Event {
    std::int32_t flow;
    OpId op{0};
    std::int32_t part = -1, wait = WaitLog::kNone, compute = -1, fault = -1;
    std::int64_t sequence = -1;
  };

  const std::vector<std::int64_t>* take_whole(const Transfers& transfers,
                                              std::span<const Rank> ranks, bool together);
  void settle();
  void begin(const Transit& transit);
  void happen(const Event& event);
  void happen(const Fault& fault);
  void join(std::int32_t flow);
  void arrive(std::int32_t flow);
  void begin(const Sleep& sleep);
  void disturb();
  std::int64_t least_end_ps();

  EngineOptions options_;
  const Workload& workload_;
  const Topology& topology_;
  Timeline timeline_;
  Interference interference_;
  Flows flows_;
  WholeSteps whole_steps_;
  Program program_;
  std::optional<LeastEnd> least_end_;  // if it is asked for
  EventQueue<Event> events_;
  std::int64_t now_ps_ = 0;
  // Reused between instants.
  std::vector<Transit> transits_;
  std::vector<Sleep> sleeps_;
  std::vector<Event> due_;
  std::vector<std::int32_t> finished_;
};

void Engine::arrive(std::int32_t flow) {
  const Transit& transit = flows_.transit(flow);
  program_.arrived(transit, options_.waits ? options_.waits->end(flow, now_ps_) : WaitLog::kNone);
  if (options_.record_flows) check_recorded(timeline_.flows.size());
  if (options_.record_flows)
    timeline_.flows.push_back({transit.op, transit.step, transit.source, transit.destination,
                               transit.bytes, flows_.start_ps(flow), now_ps_});
  if (!interference_.none()) {
    interference_.end_flow(flow, transit, now_ps_);
    disturb();
  }
  flows_.close(flow);
}

// Applies new ends of computes and new shares of flows.
void Engine::disturb() {
  for (const Interference::End& end : interference_.moved) {
    if (options_.waits) options_.waits->move_end(end.wait, end.end_ps);
    Event event{-1, end.op, end.part, end.wait, end.compute};
    event.sequence = end.sequence;
    events_.push(end.end_ps, event);
  }
  interference_.moved.clear();
  for (std::int32_t flow : interference_.reshared)
    flows_.set_share(flow, interference_.share_of(flows_.transit(flow)), now_ps_);
  interference_.reshared.clear();
}

void Engine::begin(const Sleep& sleep) {
  std::int32_t wait = options_.waits ? options_.waits->begin(sleep, now_ps_) : WaitLog::kNone;
  const auto* compute = std::get_if<Compute>(&workload_.operations[to_index(sleep.op)].body);
  if (interference_.none() || compute == nullptr) {
    events_.push(later_ps(now_ps_, sleep.duration_ps), {-1, sleep.op, sleep.part, wait});
    return;
  }
  interference_.begin_compute(sleep, compute->blocks, wait, now_ps_);
  disturb();
}

void Engine::begin(const Transit& transit) {
  if (transit.source == transit.destination) {
    program_.arrived(transit, program_.waited(transit));
    return;
  }
  auto [flow, latency_ps] = flows_.open(transit, now_ps_);
  if (options_.waits)
    options_.waits->begin(transit, program_.waited(transit), flow, now_ps_, latency_ps);
  if (options_.observer) options_.observer->begun(flow);
  if (!interference_.none()) {
    interference_.begin_flow(flow, transit, now_ps_);
    flows_.set_share(flow, interference_.share_of(transit), now_ps_);
    disturb();
  }
  Event end_of_latency{flow};
  if (latency_ps == 0)
    happen(end_of_latency);
  else
    events_.push(later_ps(now_ps_, latency_ps), end_of_latency);
}

void Engine::happen(const Event& event) {
  if (event.fault >= 0) {
    happen(options_.faults[to_index(event.fault)]);
  } else if (event.compute >= 0) {
    if (!interference_.ends(event.compute, event.sequence)) return;
    interference_.end_compute(event.compute, now_ps_);
    disturb();
    program_.woken(event.op, event.part, event.wait);
  } else if (event.flow < 0) {
    program_.woken(event.op, event.part, event.wait);
  } else if (event.sequence >= 0 ? flows_.ends_sole(event.flow, event.sequence, now_ps_)
                                 : flows_.transit(event.flow).bytes == 0) {
    arrive(event.flow);
  } else if (event.sequence < 0) {
    join(event.flow);
  }
}

void Engine::happen(const Fault& fault) {
  if (fault.kind == Fault::Kind::RankShare) {
    interference_.slow_down(fault.rank, fault.amount, now_ps_);
    disturb();
  } else {
    flows_.happen(fault, now_ps_);
  }
}

void Engine::join(std::int32_t flow) {
  std::optional<std::int64_t> end_ps = flows_.join(flow, now_ps_);
  if (!end_ps) return;
  Event end_of_sole{flow};
  end_of_sole.sequence = flows_.sequence(flow);
  events_.push(*end_ps, end_of_sole);
}

const std::vector<std::int64_t>* Engine::take_whole(const Transfers& transfers,
                                                    std::span<const Rank> ranks, bool together) {
  if (options_.record_flows) check_recorded(to_index(transfers.count()));
  // An observer of flows needs them to run.
  if (options_.record_flows || options_.run_transfers || options_.waits || options_.observer ||
      !options_.faults.empty() || !flows_.idle() ||
      events_.next_time_ps() != EventQueue<Event>::kNever)
    return nullptr;
  if (!whole_steps_.takes(transfers, ranks)) return nullptr;
  const std::vector<std::int64_t>& out = whole_steps_.durations_ps();
  if (together && std::adjacent_find(out.begin(), out.end(), std::not_equal_to<>()) != out.end())
    return nullptr;
  whole_steps_.add_uses(flows_);
  return &out;
}

// A time before which the run does not end; now, if no better one is known.
std::int64_t Engine::least_end_ps() {
  if (now_ps_ > options_.limit_ps || !least_end_ || !least_end_->is_due(now_ps_)) return now_ps_;
  const OperationRun* run = program_.run_of(OpId{0});
  return run == nullptr ? now_ps_ : least_end_->at(now_ps_, *run, flows_);
}

// Until nothing more happens at this instant.
void Engine::settle() {
  do {
    while (events_.next_time_ps() == now_ps_) {
      events_.pop(due_);
      for (const Event& event : due_) happen(event);
    }
    transits_.clear();
    sleeps_.clear();
    program_.advance(now_ps_, transits_, sleeps_);
    for (const Transit& transit : transits_) begin(transit);
    for (const Sleep& sleep : sleeps_) begin(sleep);
  } while (program_.busy() || events_.next_time_ps() == now_ps_);
}

Timeline Engine::run() {
  if (options_.limit_ps != std::numeric_limits<std::int64_t>::max() &&
      workload_.operations.size() == 1 && options_.faults.empty())
    least_end_.emplace(topology_, options_.limit_ps);
  for (std::size_t i = 0; i < options_.faults.size(); ++i) {
    Event event{-1};
    event.fault = static_cast<std::int32_t>(i);
    events_.push(options_.faults[i].from_ps, event);
  }
  for (;;) {
    settle();
    if (program_.complete()) break;  // remaining events affect nothing
    flows_.solve(now_ps_);
    std::int64_t finish_ps = flows_.next_finish_ps(),
                 next_ps = std::min(finish_ps, events_.next_time_ps());
    if (next_ps == MinimumTree::kNever) break;
    now_ps_ = next_ps;
    if (std::int64_t end_ps = least_end_ps(); end_ps > options_.limit_ps) {
      timeline_.end_ps = end_ps;
      return std::move(timeline_);
    }
    if (finish_ps != now_ps_) continue;
    flows_.retire(now_ps_, finished_);
    for (std::int32_t flow : finished_) arrive(flow);
  }
  if (!program_.complete())
    if (std::optional<Flows::Stopped> stopped = flows_.stopped()) {
      OpId op = flows_.transit(stopped->flow).op;
      throw TransferStopped(
          op, stopped->resource,
          fmt::format("{} waits for {}, which is down", text(workload_.operations[to_index(op)]),
                      topology_.resource_name(stopped->resource)));
    }
  RESHARD_CHECK(program_.complete(), program_.stuck());
  timeline_.end_ps = now_ps_;
  timeline_.resources = flows_.uses();
  timeline_.routes = flows_.route_uses();
  std::sort(timeline_.spans.begin(), timeline_.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.op, a.step, a.rank, a.start_ps, a.end_ps) <
           std::tie(b.op, b.step, b.rank, b.start_ps, b.end_ps);
  });
  std::sort(
      timeline_.flows.begin(), timeline_.flows.end(), [](const FlowSpan& a, const FlowSpan& b) {
        return std::tie(a.start_ps, a.op, a.step, a.source, a.destination, a.end_ps, a.bytes) <
               std::tie(b.start_ps, b.op, b.step, b.source, b.destination, b.end_ps, b.bytes);
      });
  return std::move(timeline_);
}

thread_local std::int64_t begun = 0;

}  // namespace

std::int64_t runs_begun() { return begun; }

Timeline run(const Workload& workload, const Topology& topology, const EngineOptions& options) {
  ++begun;
  return Engine(workload, topology, options).run();
}

std::int64_t time_of(const Plan& plan, const Topology& topology) {
  // The workload only borrows the plan.
  Workload workload =
      workload_of(std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(), &plan));
  return run(workload, topology, {.record_flows = false, .record_spans = false}).end_ps;
}

}  // namespace reshard::sim
