// SPDX-License-Identifier: BSD-3-Clause
#include "backends/mpi/prepared.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/proof/proof.h"

namespace reshard::backends::mpi {
namespace {

constexpr std::int64_t kTemporaryAlignment = 64;

}  // namespace

MpiPrepared::MpiPrepared(const Plan& plan, std::shared_ptr<World> world,
                         std::span<const CallerShards> shards)
    : plan_(plan), world_(std::move(world)), traffic_(*world_) {
  derive(shards);
}

void MpiPrepared::connect() {
  number_ = ++world_->prepared;
  std::vector<std::shared_ptr<MpiCommunicator>> comms = make_groups(plan_, *world_);
  for (const Launch& launch : schedule_.launches)
    launches_.push_back(
        make_launch({plan_, launch, *memory_, *world_, traffic_, comms[to_index(launch.step)]}));
  states_.resize(launches_.size());
  times_.resize(launches_.size());
}

MpiPrepared::~MpiPrepared() {
  if (world_->broken && mpi_is_up()) traffic_.abandon();
}

void MpiPrepared::derive(std::span<const CallerShards> shards) {
  Rank me{world_->rank};
  if (!std::binary_search(plan_.ranks.begin(), plan_.ranks.end(), me)) return;
  Slot slot = plan_.slot_of(me);
  schedule_ = std::move(
      checked_schedules(plan_, std::span(&slot, 1), schedule_policy(world_->options)).front());
  TemporaryLayout layout = lay_out_temporaries(temporary_lives(schedule_), kTemporaryAlignment);
  try {
    memory_.emplace(schedule_, shards);
  } catch (const InputError& error) {
    throw error.in(fmt::format("rank {}", world_->rank));
  }
  memory_->lay_out(layout);
  after_ = launches_before(schedule_, layout);
}

void MpiPrepared::fill(const FillSource& fill, TensorId tensor) {
  if (memory_ && schedule_.buffer(source_of(tensor)).exists)
    fill(Rank{world_->rank}, memory_->bytes(source_of(tensor)));
}

void MpiPrepared::take(const TakeDestination& take, TensorId tensor) {
  if (memory_ && schedule_.buffer(destination_of(tensor)).exists)
    take(Rank{world_->rank}, memory_->bytes(destination_of(tensor)));
}

Timeline MpiPrepared::run() {
  if (world_->broken) throw BackendError("MPI", "run", "an earlier run failed", world_->rank);
  meet();
  try {
    begin_ = Clock::now();
    run_parts();
  } catch (...) {
    world_->broken = true;
    throw;
  }
  return timeline();
}

// Checks that all processes run the same plan; if not, no byte moves, and they may go on.
void MpiPrepared::meet() {
  constexpr const char* kWhat = "the start of a run";
  World::Range all{};
  try {
    all = world_->meet(kWhat, number_);
  } catch (...) {
    world_->broken = true;
    throw;
  }
  if (!all.one())
    throw InputError(fmt::format(
        "run: expected all ranks to run the same prepared plan, found number {} of those prepared "
        "on rank {} and number {} on rank {}",
        all.least.number, all.least.process, all.largest.number, all.largest.process));
}

void MpiPrepared::run_parts() {
  std::fill(states_.begin(), states_.end(), State::Waiting);
  live_.clear();
  next_ = 0;
  launch::Patience patience = world_->patience();
  while (next_ < launches_.size() || !live_.empty()) {
    bool moved = issue_ready();
    moved = traffic_.progress() || moved;
    moved = work_once() || moved;
    moved = finish_parts() || moved;
    if (moved)
      patience.progressed();
    else if (!patience.idle())
      give_up();
  }
}

// All launches of a step form one span.
Timeline MpiPrepared::timeline() const {
  Timeline out;
  out.spans.reserve(times_.size());
  for (std::size_t i = 0; i < times_.size(); ++i) {
    auto step = static_cast<std::int32_t>(schedule_.launches[i].step);
    if (out.spans.empty() || out.spans.back().step != step)
      out.spans.push_back(
          {OpId{0}, step, Rank{world_->rank}, times_[i].start_ps, times_[i].end_ps});
    out.spans.back().end_ps = std::max(out.spans.back().end_ps, times_[i].end_ps);
    out.end_ps = std::max(out.end_ps, times_[i].end_ps);
  }
  return out;
}

bool MpiPrepared::ready(std::size_t launch) const {
  for (std::int32_t before : after_[launch])
    if (states_[to_index(before)] != State::Done) return false;
  return true;
}

bool MpiPrepared::issue_ready() {
  std::size_t first = next_;
  for (; next_ < launches_.size() && ready(next_); ++next_) {
    times_[next_] = {now_ps(), 0};
    states_[next_] = State::Working;
    live_.push_back(next_);
    launches_[next_]->issue(traffic_);
  }
  return next_ > first;
}

// Does one piece of work of the earliest launch that has any.
bool MpiPrepared::work_once() {
  for (std::size_t launch : live_) {
    if (states_[launch] != State::Working) continue;
    if (launches_[launch]->work() == Work::Done) states_[launch] = State::Moving;
    return true;
  }
  return false;
}

bool MpiPrepared::finish_parts() {
  return std::erase_if(live_, [&](std::size_t launch) {
           if (states_[launch] != State::Moving || launches_[launch]->pending > 0) return false;
           states_[launch] = State::Done;
           times_[launch].end_ps = now_ps();
           return true;
         }) > 0;
}

std::int64_t MpiPrepared::now_ps() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin_).count() * 1000;
}

// Nothing has moved within the time limit: every live launch waits for other processes.
void MpiPrepared::give_up() const {
  std::size_t launch = live_.front();
  StepId step = schedule_.launches[launch].step;
  world_->give_up(fmt::format("step {} ({})", to_index(step), kind_text(plan_.steps[step])),
                  ranks_text(traffic_.awaited({&launches_[launch]->pending})));
}

}  // namespace reshard::backends::mpi
