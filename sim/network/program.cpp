// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/program.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

Program::Program(const Workload& workload, std::int32_t devices, std::vector<Span>* spans)
    : workload_(workload), spans_(spans), operations_(workload.operations.size()) {
  add_places(devices);
  link_streams();
  link_after();
  for (std::size_t op = 0; op < operations_.size(); ++op) {
    const OperationState& state = operations_[op];
    if (state.after_left > 0) continue;
    for (std::int32_t i = 0; i < state.place_count; ++i) release(state.first_place + i);
    if (state.place_count == 0)
      tasks_.push_back({Task::Kind::Complete, OpId{static_cast<std::int32_t>(op)}, 0});
  }
}

// A place waits for two things at most: `after`, counted as one, and the place before it. release()
// takes one off.
void Program::add_places(std::int32_t devices) {
  for (std::size_t op = 0; op < operations_.size(); ++op) {
    const Operation& operation = workload_.operations[op];
    std::vector<Rank> ranks = ranks_of(operation);
    const auto* message = std::get_if<Message>(&operation.body);
    if (message != nullptr && message->source == message->destination &&
        message->destination_stream == operation.stream)
      ranks.pop_back();
    for (Rank rank : ranks) {
      if (to_int(rank) < 0 || to_int(rank) >= devices)
        throw InputError(fmt::format(
            "operation {} ({}): expected ranks below {}, the number of devices, found rank {}", op,
            text(operation), devices, to_int(rank)));
    }
    RESHARD_CHECK(places_.size() + ranks.size() <=
                      static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                  "more places than 2^31");
    OperationState& state = operations_[op];
    state.first_place = static_cast<std::int32_t>(places_.size());
    state.place_count = state.places_left = static_cast<std::int32_t>(ranks.size());
    ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
    places_.resize(ranks_.size(), Place{static_cast<std::int32_t>(op), -1, 1});
  }
}

// Where a place stands among those of its rank and stream.
struct Program::StreamEntry {
  Rank rank;
  std::int32_t stream, at;  // `at`: index among the operations
  bool own;  // the operation of that index itself comes after receiving ends placed before it
  std::int32_t place;
  auto key() const { return std::tie(rank, stream, at, own, place); }
};

void Program::link_streams() {
  std::vector<StreamEntry> entries;
  entries.reserve(places_.size());
  for (std::size_t place = 0; place < places_.size(); ++place) {
    std::int32_t op = places_[place].op;
    const Operation& operation = workload_.operations[static_cast<std::size_t>(op)];
    StreamEntry entry{ranks_[place], operation.stream, op, true, static_cast<std::int32_t>(place)};
    const auto* message = std::get_if<Message>(&operation.body);
    bool receives =
        message != nullptr && entry.place != operations_[static_cast<std::size_t>(op)].first_place;
    if (receives) {
      entry.stream = message->destination_stream;
      entry.at = static_cast<std::int32_t>(to_index(message->destination_place));
      entry.own = entry.at == op;
    }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const StreamEntry& a, const StreamEntry& b) { return a.key() < b.key(); });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].rank != entries[i - 1].rank || entries[i].stream != entries[i - 1].stream)
      continue;
    places_[static_cast<std::size_t>(entries[i - 1].place)].next = entries[i].place;
    ++places_[static_cast<std::size_t>(entries[i].place)].waits;
  }
}

void Program::link_after() {
  first_dependent_.assign(operations_.size() + 1, 0);
  for (std::size_t op = 0; op < operations_.size(); ++op)
    for (OpId before : workload_.operations[op].after) {
      RESHARD_CHECK(to_index(before) < operations_.size(),
                    fmt::format("operation {} comes after operation {}, which does not exist", op,
                                to_index(before)));
      ++first_dependent_[to_index(before) + 1];
      ++operations_[op].after_left;
    }
  std::partial_sum(first_dependent_.begin(), first_dependent_.end(), first_dependent_.begin());
  std::vector<std::size_t> next = first_dependent_;
  dependents_.resize(first_dependent_.back());
  for (std::size_t op = 0; op < operations_.size(); ++op)
    for (OpId before : workload_.operations[op].after)
      dependents_[next[to_index(before)]++] = static_cast<std::int32_t>(op);
}

void Program::release(std::int32_t place) {
  Place& at = places_[static_cast<std::size_t>(place)];
  if (--at.waits == 0) tasks_.push_back({Task::Kind::Place, OpId{at.op}, place});
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
  Place& at = places_[static_cast<std::size_t>(place)];
  OperationState& state = operations_[static_cast<std::size_t>(at.op)];
  OpId op{at.op};
  at.started = true;
  if (!state.run) {
    std::span<const Rank> ranks = std::span(ranks_).subspan(
        static_cast<std::size_t>(state.first_place), static_cast<std::size_t>(state.place_count));
    state.run = std::make_unique<OperationRun>(op, workload_.operations[to_index(op)], ranks);
  }
  Slot slot = place - state.first_place;
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
  if (run.slot_done(slot)) finish_place(state.first_place + slot);
}

void Program::finish_place(std::int32_t place) {
  Place& at = places_[static_cast<std::size_t>(place)];
  at.done = true;
  if (at.next >= 0) release(at.next);
  if (--operations_[static_cast<std::size_t>(at.op)].places_left == 0) finish_operation(at.op);
}

void Program::finish_operation(std::int32_t op) {
  auto at = static_cast<std::size_t>(op);
  operations_[at].run.reset();
  ++complete_;
  for (std::size_t i = first_dependent_[at]; i < first_dependent_[at + 1]; ++i) {
    OperationState& next = operations_[static_cast<std::size_t>(dependents_[i])];
    if (--next.after_left > 0) continue;
    for (std::int32_t p = 0; p < next.place_count; ++p) release(next.first_place + p);
    if (next.place_count == 0) tasks_.push_back({Task::Kind::Complete, OpId{dependents_[i]}, 0});
  }
}

std::string Program::why_stuck(std::size_t op) const {
  const OperationState& state = operations_[op];
  if (state.after_left > 0)
    for (OpId before : workload_.operations[op].after) {
      if (!complete(before)) return fmt::format("comes after operation {}", to_index(before));
    }
  for (std::int32_t place = state.first_place; place < state.first_place + state.place_count;
       ++place) {
    if (places_[static_cast<std::size_t>(place)].started) continue;
    for (std::size_t before = 0; before < places_.size(); ++before)
      if (places_[before].next == place)
        return fmt::format("on rank {} comes behind operation {}",
                           to_int(ranks_[static_cast<std::size_t>(place)]), places_[before].op);
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
