// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/program.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "core/base/errors.h"

namespace reshard::sim {

Streams::Streams(const Workload& workload) {
  add_places(workload);
  link(workload);
  std::size_t count = workload.operations.size();
  dependents = Grouped<OpId>(count, [&](auto put) {
    for (std::size_t op = 0; op < count; ++op)
      for (OpId before : workload.operations[op].after) {
        RESHARD_CHECK(to_index(before) < count,
                      fmt::format("operation {} comes after operation {}, which does not exist", op,
                                  to_index(before)));
        put(before, id_of<OpId>(op));
      }
  });
}

void Streams::add_places(const Workload& workload) {
  for (const Operation& operation : workload.operations) {
    std::vector<Rank> own = ranks_of(operation);
    const auto* message = std::get_if<Message>(&operation.body);
    if (message != nullptr && message->source == message->destination &&
        message->destination_stream == operation.stream)
      own.pop_back();
    RESHARD_CHECK(places.size() + own.size() <= to_index(std::numeric_limits<std::int32_t>::max()),
                  "more places than 2^31");
    auto op = id_of<OpId>(first_.size());
    first_.push_back(static_cast<std::int32_t>(places.size()));
    ranks.insert(ranks.end(), own.begin(), own.end());
    places.resize(ranks.size(), {op});
  }
  first_.push_back(static_cast<std::int32_t>(places.size()));
}

void Streams::link(const Workload& workload) {
  // `at`: where among the operations. The operation that stands there itself (`own`) comes after
  // receiving ends placed before it.
  struct Entry {
    Rank rank;
    std::int32_t stream;
    OpId at;
    bool own;
    std::int32_t place;
    auto key() const { return std::tie(rank, stream, at, own, place); }
  };
  std::vector<Entry> entries;
  entries.reserve(places.size());
  for (std::size_t place = 0; place < places.size(); ++place) {
    OpId op = places[place].op;
    const Operation& operation = workload.operations[to_index(op)];
    Entry entry{ranks[place], operation.stream, op, true, static_cast<std::int32_t>(place)};
    const auto* message = std::get_if<Message>(&operation.body);
    if (message != nullptr && entry.place != first_of(op)) {
      entry.stream = message->destination_stream;
      entry.at = message->destination_place;
      entry.own = entry.at == op;
    }
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key() < b.key(); });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].rank == entries[i - 1].rank && entries[i].stream == entries[i - 1].stream)
      places[entries[i - 1].place].next = entries[i].place;
}

Program::Program(const Workload& workload, std::int32_t devices, std::vector<Span>* spans,
                 Carriers carriers, const WaitLog* waits, TakeWhole take_whole)
    : workload_(workload),
      spans_(spans),
      carriers_(carriers),
      waits_(waits),
      take_whole_(std::move(take_whole)),
      streams_(workload),
      operations_(workload.operations.size()),
      places_(streams_.places.size()) {
  check_ranks(devices);
  if (waits_ != nullptr) {
    operation_waited_.resize(operations_.size(), WaitLog::kNone);
    place_waited_.resize(places_.size(), WaitLog::kNone);
  }
  for (const Streams::Place& place : streams_.places)
    if (place.next >= 0) ++places_[place.next].waits;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    auto op = id_of<OpId>(i);
    operations_[op].places_left = streams_.end_of(op) - streams_.first_of(op);
    operations_[op].after_left = static_cast<std::int32_t>(workload.operations[i].after.size());
  }
  for (std::size_t i = 0; i < operations_.size(); ++i)
    if (operations_[i].after_left == 0) release_all(id_of<OpId>(i));
}

void Program::check_ranks(std::int32_t devices) const {
  for (std::size_t place = 0; place < places_.size(); ++place) {
    OpId op = streams_.places[place].op;
    std::int32_t rank = to_int(streams_.ranks[place]);
    if (rank < 0 || rank >= devices)
      throw InputError(fmt::format(
          "operation {} ({}): expected ranks below {}, the number of devices, found rank {}",
          to_index(op), text(workload_.operations[to_index(op)]), devices, rank));
  }
}

// What the operation comes after is complete.
void Program::release_all(OpId op) {
  for (std::int32_t place = streams_.first_of(op); place < streams_.end_of(op); ++place)
    release(place, waited(operation_waited_, op));
  if (!has_places(op)) tasks_.push_back({Task::Kind::Complete, op, 0});
}

void Program::release(std::int32_t place, std::int32_t waited) {
  note(place_waited_, place, waited);
  if (--places_[place].waits == 0)
    tasks_.push_back({Task::Kind::Place, streams_.places[place].op, place});
}

void Program::arrived(const Transit& transit, std::int32_t wait) {
  OperationRun& run = *operations_[transit.op].run;
  for (std::int32_t part : {transit.source_part, transit.destination_part})
    if (run.arrived(part, wait)) tasks_.push_back({Task::Kind::Part, transit.op, part});
}

void Program::woken(OpId op, std::int32_t part, std::int32_t wait) {
  operations_[op].run->woken(part, wait);
  tasks_.push_back({Task::Kind::Part, op, part});
}

std::int32_t Program::waited(const Transit& transit) const {
  std::int32_t last = WaitLog::kNone;
  if (waits_ == nullptr) return last;
  const OperationRun& run = *operations_[transit.op].run;
  for (std::int32_t part : {transit.source_part, transit.destination_part})
    waits_->keep_later(last, run.waited(part));
  return last;
}

// Where steps may be taken whole, parts whose rounds begin wait for all else that happens now.
void Program::advance(std::int64_t now_ps, std::vector<Transit>& transits,
                      std::vector<Sleep>& sleeps) {
  for (std::size_t i = 0; i < tasks_.size();) {
    for (; i < tasks_.size(); ++i) {
      Task task = tasks_[i];  // the queue grows on the way
      if (task.kind == Task::Kind::Complete)
        finish_operation(task.op);
      else if (task.kind == Task::Kind::Place)
        start_place(task.index);
      else if (take_whole_ && operations_[task.op].run->begins_rounds(task.index))
        beginning_.push_back(task);
      else
        run_part(task, now_ps, transits, sleeps);
    }
    if (!transits.empty() || !sleeps.empty() || !take_step(now_ps, sleeps))
      for (const Task& task : beginning_) run_part(task, now_ps, transits, sleeps);
    beginning_.clear();
  }
  tasks_.clear();
}

// What begins now is one step, on every part of it: perhaps it is taken whole.
bool Program::take_step(std::int64_t now_ps, std::vector<Sleep>& sleeps) {
  if (beginning_.empty()) return false;
  OpId op = beginning_.front().op;
  OperationRun& run = *operations_[op].run;
  OperationRun::Parts parts = run.parts_beside(beginning_.front().index);
  if (beginning_.size() != to_index(parts.count) ||
      !std::all_of(beginning_.begin(), beginning_.end(),
                   [&](const Task& at) { return at.op == op && parts.has(at.index); }))
    return false;
  // Where nothing follows, nobody can come in the way of parts that take longer.
  bool last = complete_ + 1 == operations_.size() && run.parts_left() == parts.count;
  std::vector<Rank> ranks;
  for (std::int32_t i = 0; i < parts.count; ++i) ranks.push_back(run.rank_of(parts.first + i));
  const std::vector<std::int64_t>* durations_ps = take_whole_(run.transfers(parts), ranks, !last);
  if (durations_ps == nullptr) return false;
  for (std::int32_t i = 0; i < parts.count; ++i) {
    std::int32_t part = parts.first + i;
    run.pass_over(part, now_ps);
    sleeps.push_back({op, part, run.rank_of(part), (*durations_ps)[to_index(i)], run.waited(part)});
  }
  return true;
}

void Program::push_ready(OpId op) {
  for (std::int32_t part : ready_) tasks_.push_back({Task::Kind::Part, op, part});
  ready_.clear();
}

void Program::start_place(std::int32_t place) {
  places_[place].started = true;
  OpId op = streams_.places[place].op;
  OperationState& state = operations_[op];
  std::int32_t first = streams_.first_of(op), end = streams_.end_of(op);
  if (!state.run) {
    std::span<const Rank> ranks =
        std::span(streams_.ranks).subspan(to_index(first), to_index(end - first));
    state.run = std::make_unique<OperationRun>(op, workload_.operations[to_index(op)], ranks,
                                               carriers_.of(op), waits_);
  }
  Slot slot = place - first;
  if (state.run->slot_done(slot)) {
    finish_place(place);
    return;
  }
  state.run->start_slot(slot, waited(place_waited_, place), ready_);
  push_ready(op);
}

void Program::run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                       std::vector<Sleep>& sleeps) {
  const OperationState& state = operations_[task.op];
  OperationRun& run = *state.run;
  OperationRun::Progress progress = run.go_on(task.index, now_ps, transits);
  if (progress == OperationRun::Progress::Waits) return;
  if (progress == OperationRun::Progress::Sleeps) {
    sleeps.push_back(
        {task.op, task.index, run.rank_of(task.index), run.duration_ps(), run.waited(task.index)});
    return;
  }
  if (spans_ != nullptr)
    spans_->push_back({task.op, run.step_of(task.index), run.rank_of(task.index),
                       run.start_ps(task.index), now_ps});
  Slot slot = run.slot_of(task.index);
  std::int32_t place = streams_.first_of(task.op) + slot;
  note(place_waited_, place, run.waited(task.index));
  run.finish(task.index, ready_);
  push_ready(task.op);
  if (run.slot_done(slot)) finish_place(place);
}

void Program::finish_place(std::int32_t place) {
  const Streams::Place& at = streams_.places[place];
  if (at.next >= 0) release(at.next, waited(place_waited_, place));
  note(operation_waited_, at.op, waited(place_waited_, place));
  if (--operations_[at.op].places_left == 0) finish_operation(at.op);
}

void Program::finish_operation(OpId op) {
  operations_[op].run.reset();
  ++complete_;
  for (OpId dependent : streams_.dependents[op]) {
    note(operation_waited_, dependent, waited(operation_waited_, op));
    if (--operations_[dependent].after_left == 0) release_all(dependent);
  }
}

std::string Program::why_stuck(OpId op) const {
  const OperationState& state = operations_[op];
  if (state.after_left > 0)
    for (OpId before : workload_.operations[to_index(op)].after)
      if (!complete(before)) return fmt::format("comes after operation {}", to_index(before));
  for (std::int32_t place = streams_.first_of(op); place < streams_.end_of(op); ++place) {
    if (places_[place].started) continue;
    for (const Streams::Place& before : streams_.places)
      if (before.next == place)
        return fmt::format("on rank {} comes behind operation {}", to_int(streams_.ranks[place]),
                           to_index(before.op));
  }
  return "has started everywhere";
}

std::string Program::stuck() const {
  std::string out;
  std::size_t named = 0, left = operations_.size() - complete_;
  for (std::size_t i = 0; i < operations_.size() && named < 5; ++i) {
    auto op = id_of<OpId>(i);
    if (complete(op)) continue;
    out += fmt::format("{}operation {} ({}) {}", named == 0 ? "" : "; ", i,
                       text(workload_.operations[i]), why_stuck(op));
    ++named;
  }
  return left > named ? fmt::format("{}; and {} more", out, left - named) : out;
}

}  // namespace reshard::sim
