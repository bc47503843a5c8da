// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/prepared.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::backends::mpi {
namespace {

constexpr std::int64_t kTemporaryAlignment = 64;

}  // namespace

MpiPrepared::MpiPrepared(const Plan& plan, std::shared_ptr<World> world, const CallerShards* shards)
    : plan_(plan), world_(std::move(world)), traffic_(*world_) {
  std::vector<std::shared_ptr<Communicator>> comms = make_groups(plan_, *world_);
  derive(shards);
  for (const RankStep& step : program_.steps)
    parts_.push_back(part_of(step, comms[to_index(step.step)]));
  states_.resize(parts_.size());
  spans_.resize(parts_.size());
}

MpiPrepared::~MpiPrepared() {
  if (world_->broken && mpi_is_up()) traffic_.abandon();
}

void MpiPrepared::derive(const CallerShards* shards) {
  Rank me{world_->rank};
  if (!std::binary_search(plan_.ranks.begin(), plan_.ranks.end(), me)) return;
  Slot slot = plan_.slot_of(me);
  program_ = std::move(rank_programs(plan_, std::span(&slot, 1)).front());
  TemporaryLayout layout;
  layout.offset.assign(plan_.buffers.size(), -1);
  if (plan_.buffers.size() > 2)
    layout = lay_out_temporaries(plan_, lives_of(plan_), slot, kTemporaryAlignment);
  memory_.emplace(plan_, slot, layout, shards);
  after_ = ordered_after(plan_, program_, layout);
}

std::unique_ptr<Part> MpiPrepared::part_of(const RankStep& step,
                                           const std::shared_ptr<Communicator>& comm) {
  PartContext context{plan_, step, program_.slot, *memory_, *world_, traffic_, comm};
  const StepBody& body = plan_.steps[to_index(step.step)].body;
  if (std::holds_alternative<ExchangeStep>(body)) return make_exchange_part(context);
  if (std::holds_alternative<CollectiveStep>(body)) return make_collective_part(context);
  return make_local_part(context);
}

void MpiPrepared::fill(const FillSource& fill, TensorId) {
  if (memory_ && plan_.buffer(kSourceBuffer).exists(program_.slot))
    fill(Rank{world_->rank}, memory_->source());
}

void MpiPrepared::take(const TakeDestination& take, TensorId) {
  if (memory_ && plan_.buffer(kDestinationBuffer).exists(program_.slot))
    take(Rank{world_->rank}, memory_->destination());
}

Timeline MpiPrepared::run() {
  if (world_->broken) throw BackendError("MPI", "run", "an earlier run failed", world_->rank);
  Timeline timeline;
  try {
    world_->barrier("the start of a run");
    begin_ = Clock::now();
    run_parts(timeline);
  } catch (...) {
    world_->broken = true;
    throw;
  }
  return timeline;
}

void MpiPrepared::run_parts(Timeline& timeline) {
  std::fill(states_.begin(), states_.end(), State::Waiting);
  live_.clear();
  next_ = 0;
  job::Patience patience = world_->patience();
  while (next_ < parts_.size() || !live_.empty()) {
    bool moved = issue_ready();
    moved = traffic_.progress() || moved;
    moved = work_once() || moved;
    moved = finish_parts() || moved;
    if (moved)
      patience.progressed();
    else if (!patience.idle())
      give_up();
  }
  timeline.spans = spans_;
  for (const Span& span : spans_) timeline.end_ps = std::max(timeline.end_ps, span.end_ps);
}

bool MpiPrepared::ready(std::size_t step) const {
  return std::all_of(after_[step].begin(), after_[step].end(), [&](std::int32_t before) {
    return states_[static_cast<std::size_t>(before)] == State::Done;
  });
}

bool MpiPrepared::issue_ready() {
  std::size_t first = next_;
  for (; next_ < parts_.size() && ready(next_); ++next_) {
    std::int64_t start = now_ps();
    spans_[next_] = {OpId{0}, static_cast<std::int32_t>(program_.steps[next_].step),
                     Rank{world_->rank}, start, start};
    states_[next_] = State::Working;
    live_.push_back(next_);
    parts_[next_]->issue(traffic_);
  }
  return next_ > first;
}

// One piece of the earliest step that can do some.
bool MpiPrepared::work_once() {
  for (std::size_t step : live_) {
    if (states_[step] != State::Working) continue;
    Work work = parts_[step]->work();
    if (work == Work::Waiting) continue;
    if (work == Work::Done) states_[step] = State::Moving;
    return true;
  }
  return false;
}

bool MpiPrepared::finish_parts() {
  return std::erase_if(live_, [&](std::size_t step) {
           if (states_[step] != State::Moving || parts_[step]->pending > 0) return false;
           states_[step] = State::Done;
           spans_[step].end_ps = now_ps();
           return true;
         }) > 0;
}

std::int64_t MpiPrepared::now_ps() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count() * 1000;
}

// Nothing has moved for the time limit: all steps that are live wait for others.
void MpiPrepared::give_up() const {
  std::size_t step = live_.front();
  std::int32_t id = static_cast<std::int32_t>(program_.steps[step].step);
  world_->give_up(
      fmt::format("step {} ({})", id, kind_text(plan_.steps[static_cast<std::size_t>(id)])),
      ranks_text(traffic_.awaited(parts_[step]->awaited())));
}

}  // namespace reshard::backends::mpi
