// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/program.h"

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

Program::Program(const Workload& workload, std::int32_t devices, std::vector<Span>* spans)
    : workload_(workload),
      spans_(spans),
      streams_(workload),
      operations_(workload.operations.size()),
      places_(streams_.places.size()) {
  check_ranks(devices);
  for (const Streams::Place& place : streams_.places)
    if (place.next >= 0) ++places_[static_cast<std::size_t>(place.next)].waits;
  for (std::size_t op = 0; op < operations_.size(); ++op) {
    operations_[op].places_left = streams_.end_of(op) - streams_.first_of(op);
    operations_[op].after_left = static_cast<std::int32_t>(workload.operations[op].after.size());
  }
  for (std::size_t op = 0; op < operations_.size(); ++op)
    if (operations_[op].after_left == 0) release_all(op);
}

void Program::check_ranks(std::int32_t devices) const {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    std::int32_t op = streams_.places[place].op, rank = to_int(streams_.ranks[place]);
    if (rank < 0 || rank >= devices)
      throw InputError(fmt::format(
          "operation {} ({}): expected ranks below {}, the number of devices, found rank {}", op,
          text(workload_.operations[static_cast<std::size_t>(op)]), devices, rank));
  }
}

// What the operation comes after is complete.
void Program::release_all(std::size_t op) {
  for (std::int32_t place = streams_.first_of(op); place < streams_.end_of(op); ++place)
    release(place);
  if (!has_places(op))
    tasks_.push_back({Task::Kind::Complete, OpId{static_cast<std::int32_t>(op)}, 0});
}

void Program::release(std::int32_t place) {
  auto at = static_cast<std::size_t>(place);
  if (--places_[at].waits == 0)
    tasks_.push_back({Task::Kind::Place, OpId{streams_.places[at].op}, place});
}

void Program::arrived(const Transit& transit) {
  OperationRun& run = *operations_[to_index(transit.op)].run;
  for (std::int32_t part : {transit.source_part, transit.destination_part})
    if (run.arrived(part)) tasks_.push_back({Task::Kind::Part, transit.op, part});
}

void Program::advance(std::int64_t now_ps, std::vector<Transit>& transits,
                      std::vector<Sleep>& sleeps) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Task task = tasks_[i];  // the queue grows on the way
    if (task.kind == Task::Kind::Complete)
      finish_operation(static_cast<std::int32_t>(to_index(task.op)));
    else if (task.kind == Task::Kind::Place)
      start_place(task.index);
    else
      run_part(task, now_ps, transits, sleeps);
  }
  tasks_.clear();
}

void Program::push_ready(OpId op) {
  for (std::int32_t part : ready_) tasks_.push_back({Task::Kind::Part, op, part});
  ready_.clear();
}

void Program::start_place(std::int32_t place) {
  places_[static_cast<std::size_t>(place)].started = true;
  OpId op{streams_.places[static_cast<std::size_t>(place)].op};
  OperationState& state = operations_[to_index(op)];
  std::int32_t first = streams_.first_of(to_index(op)), end = streams_.end_of(to_index(op));
  if (!state.run) {
    std::span<const Rank> ranks =
        std::span(streams_.ranks)
            .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
    state.run = std::make_unique<OperationRun>(op, workload_.operations[to_index(op)], ranks);
  }
  Slot slot = place - first;
  if (state.run->slot_done(slot)) {
    finish_place(place);
    return;
  }
  state.run->start_slot(slot, ready_);
  push_ready(op);
}

void Program::run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                       std::vector<Sleep>& sleeps) {
  const OperationState& state = operations_[to_index(task.op)];
  OperationRun& run = *state.run;
  OperationRun::Progress progress = run.go_on(task.index, now_ps, transits);
  if (progress == OperationRun::Progress::Waits) return;
  if (progress == OperationRun::Progress::Sleeps) {
    sleeps.push_back({task.op, task.index, run.duration_ps()});
    return;
  }
  if (spans_ != nullptr)
    spans_->push_back({task.op, run.step_of(task.index), run.rank_of(task.index),
                       run.start_ps(task.index), now_ps});
  Slot slot = run.slot_of(task.index);
  run.finish(task.index, ready_);
  push_ready(task.op);
  if (run.slot_done(slot)) finish_place(streams_.first_of(to_index(task.op)) + slot);
}

void Program::finish_place(std::int32_t place) {
  const Streams::Place& at = streams_.places[static_cast<std::size_t>(place)];
  if (at.next >= 0) release(at.next);
  if (--operations_[static_cast<std::size_t>(at.op)].places_left == 0) finish_operation(at.op);
}

void Program::finish_operation(std::int32_t op) {
  auto at = static_cast<std::size_t>(op);
  operations_[at].run.reset();
  ++complete_;
  for (std::int32_t dependent : streams_.dependents[at]) {
    auto next = static_cast<std::size_t>(dependent);
    if (--operations_[next].after_left == 0) release_all(next);
  }
}

std::string Program::why_stuck(std::size_t op) const {
  const OperationState& state = operations_[op];
  if (state.after_left > 0)
    for (OpId before : workload_.operations[op].after) {
      if (!complete(before)) return fmt::format("comes after operation {}", to_index(before));
    }
  for (std::int32_t place = streams_.first_of(op); place < streams_.end_of(op); ++place) {
    if (places_[static_cast<std::size_t>(place)].started) continue;
    for (const Streams::Place& before : streams_.places)
      if (before.next == place)
        return fmt::format("on rank {} comes behind operation {}",
                           to_int(streams_.ranks[static_cast<std::size_t>(place)]), before.op);
  }
  return "has started everywhere";
}

std::string Program::stuck() const {
  std::string out;
  std::size_t named = 0, left = operations_.size() - complete_;
  for (std::size_t op = 0; op < operations_.size() && named < 5; ++op) {
    if (complete(OpId{static_cast<std::int32_t>(op)})) continue;
    out += fmt::format("{}operation {} ({}) {}", named == 0 ? "" : "; ", op,
                       text(workload_.operations[op]), why_stuck(op));
    ++named;
  }
  return left > named ? fmt::format("{}; and {} more", out, left - named) : out;
}

}  // namespace reshard::sim
