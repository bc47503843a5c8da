// SPDX-License-Identifier: BSD-3-Clause
#include "sim/network/program.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard::sim {

Program::Program(const Workload& workload, std::int32_t devices, ProgramOptions options)
    : workload_(workload),
      options_(std::move(options)),
      waits_(options_.waits),
      own_order_(options_.order ? nullptr : std::make_unique<const Order>(workload)),
      order_(options_.order ? *options_.order : *own_order_),
      operations_(workload.operations.size()),
      nodes_(order_.nodes()) {
  check_ranks(devices);
  if (waits_ != nullptr) {
    operation_waited_.resize(operations_.size(), WaitLog::kNone);
    node_waited_.resize(nodes_.size(), WaitLog::kNone);
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    auto op = id_of<OpId>(i);
    operations_[op].places_left = operations_[op].to_start =
        order_.end_of(op) - order_.first_of(op);
    operations_[op].after_left = static_cast<std::int32_t>(workload.operations[i].after.size());
  }
  count_waits();
  for (std::size_t i = 0; i < operations_.size(); ++i)
    if (operations_[i].after_left == 0) release_all(id_of<OpId>(i));
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank) issue(id_of<Rank>(rank), WaitLog::kNone);
}

// Waits of the order, plus one for the operations in `after`, and one for being issued.
void Program::count_waits() {
  for (std::size_t node = 0; node < nodes_.size(); ++node)
    nodes_[node].waits = order_.waits_of(static_cast<std::int32_t>(node));
  for (std::size_t place = 0; place < order_.places(); ++place)
    ++nodes_[order_.gate_of(static_cast<std::int32_t>(place))].waits;
  if (options_.launch_queue == 0 || order_.launches().empty()) return;
  for (const Order::LaunchNodes& launch : order_.launches()) ++nodes_[launch.gate].waits;
  hosts_.resize(to_index(order_.highest_rank()) + 1);
}

void Program::check_ranks(std::int32_t devices) const {
  for (std::size_t i = 0; i < order_.places(); ++i) {
    auto place = static_cast<std::int32_t>(i);
    OpId op = order_.op_of(place);
    std::int32_t rank = to_int(order_.rank_of(place));
    if (rank < 0 || rank >= devices)
      throw InputError(fmt::format(
          "operation {} ({}): expected ranks below {}, the number of devices, found rank {}",
          to_index(op), reshard::text(workload_.operations[to_index(op)]), devices, rank));
  }
}

// All operations that this one comes after are complete.
void Program::release_all(OpId op) {
  for (std::int32_t place = order_.first_of(op); place < order_.end_of(op); ++place)
    release(order_.gate_of(place), waited(operation_waited_, op));
  if (!has_places(op)) tasks_.push_back({Task::Kind::Complete, op, 0});
}

void Program::release(std::int32_t node, std::int32_t waited) {
  note(node_waited_, node, waited);
  if (--nodes_[node].waits == 0) tasks_.push_back({Task::Kind::Node, OpId{0}, node});
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

// If steps may be taken whole, parts that begin their rounds wait for everything else of this
// instant.
void Program::advance(std::int64_t now_ps, std::vector<Transit>& transits,
                      std::vector<Sleep>& sleeps) {
  for (std::size_t i = 0; i < tasks_.size();) {
    for (; i < tasks_.size(); ++i) {
      Task task = tasks_[i];  // the queue grows meanwhile
      if (task.kind == Task::Kind::Complete)
        finish_operation(task.op);
      else if (task.kind == Task::Kind::Node)
        start_node(task.index);
      else if (options_.take_whole && operations_[task.op].run->begins_rounds(task.index))
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

// If exactly all parts of one step begin now, tries to take it whole.
bool Program::take_step(std::int64_t now_ps, std::vector<Sleep>& sleeps) {
  if (beginning_.empty()) return false;
  OpId op = beginning_.front().op;
  OperationRun& run = *operations_[op].run;
  OperationRun::Parts parts = run.neighbouring_parts(beginning_.front().index);
  if (beginning_.size() != to_index(parts.count) ||
      !std::all_of(beginning_.begin(), beginning_.end(),
                   [&](const Task& at) { return at.op == op && parts.has(at.index); }))
    return false;
  // If nothing follows, nothing can disturb parts that take longer.
  bool last = complete_ + 1 == operations_.size() && run.parts_left() == parts.count;
  std::vector<Rank> ranks;
  for (std::int32_t i = 0; i < parts.count; ++i) ranks.push_back(run.rank_of(parts.first + i));
  const std::vector<std::int64_t>* durations_ps =
      options_.take_whole(run.transfers(parts), ranks, !last);
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

void Program::start_node(std::int32_t node) {
  nodes_[node].started = true;
  for (std::int32_t next : order_.at_start(node)) release(next, waited(node_waited_, node));
  if (order_.is_place(node))
    start_place(node);
  else
    finish_node(node);
}

void Program::start_place(std::int32_t place) {
  OpId op = order_.op_of(place);
  OperationState& state = operations_[op];
  --state.to_start;
  if (!state.run)
    state.run =
        std::make_unique<OperationRun>(op, workload_.operations[to_index(op)], order_.ranks_of(op),
                                       options_.carriers.of(op), waits_);
  if (!std::holds_alternative<Setup>(workload_.operations[to_index(op)].body)) {
    start_slot(op, place);
    return;
  }
  if (state.to_start > 0) return;
  for (std::int32_t each = order_.first_of(op); each < order_.end_of(op); ++each) {
    note(node_waited_, each, waited(node_waited_, place));
    start_slot(op, each);
  }
}

void Program::start_slot(OpId op, std::int32_t place) {
  OperationRun& run = *operations_[op].run;
  Slot slot = place - order_.first_of(op);
  if (run.slot_done(slot)) {
    finish_place(place);
    return;
  }
  run.start_slot(slot, waited(node_waited_, place), ready_);
  push_ready(op);
}

void Program::run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                       std::vector<Sleep>& sleeps) {
  const OperationState& state = operations_[task.op];
  OperationRun& run = *state.run;
  OperationRun::Progress progress = run.go_on(task.index, now_ps, transits, ready_);
  push_ready(task.op);
  if (progress == OperationRun::Progress::Waits) return;
  if (progress == OperationRun::Progress::Sleeps) {
    sleeps.push_back(
        {task.op, task.index, run.rank_of(task.index), run.duration_ps(), run.waited(task.index)});
    return;
  }
  if (options_.spans != nullptr)
    options_.spans->push_back({task.op, run.step_of(task.index), run.rank_of(task.index),
                               run.start_ps(task.index), now_ps});
  Slot slot = run.slot_of(task.index);
  std::int32_t place = order_.first_of(task.op) + slot;
  note(node_waited_, place, run.waited(task.index));
  run.finish(task.index, ready_);
  push_ready(task.op);
  if (run.slot_done(slot)) finish_place(place);
}

void Program::finish_node(std::int32_t node) {
  nodes_[node].done = true;
  for (std::int32_t next : order_.at_end(node)) release(next, waited(node_waited_, node));
  if (hosts_.empty() || !order_.ends_launch(node)) return;
  --hosts_[order_.rank_of(node)].pending;
  issue(order_.rank_of(node), waited(node_waited_, node));
}

void Program::finish_place(std::int32_t place) {
  finish_node(place);
  OpId op = order_.op_of(place);
  note(operation_waited_, op, waited(node_waited_, place));
  if (--operations_[op].places_left == 0) finish_operation(op);
}

// Issues as many launches as the queue has room for.
void Program::issue(Rank rank, std::int32_t waited) {
  HostState& host = hosts_[rank];
  std::span<const std::int32_t> own = order_.issued()[rank];
  while (to_index(host.issued) < own.size() && host.pending < options_.launch_queue) {
    ++host.pending;
    release(order_.launches()[to_index(own[to_index(host.issued++)])].gate, waited);
  }
}

void Program::finish_operation(OpId op) {
  operations_[op].run.reset();
  ++complete_;
  for (OpId dependent : order_.dependents(op)) {
    note(operation_waited_, dependent, waited(operation_waited_, op));
    if (--operations_[dependent].after_left == 0) release_all(dependent);
  }
}

// An operation that keeps the node from being done.
OpId Program::unfinished(std::int32_t node) const {
  if (order_.is_place(node)) return order_.op_of(node);
  for (std::int32_t place : order_.batch_of(node))
    if (!nodes_[place].done) return order_.op_of(place);
  RESHARD_CHECK(false, "a batch that is both done and not done");
}

OpId Program::first_pending(Rank rank) const {
  std::span<const std::int32_t> own = order_.issued()[rank];
  for (std::int32_t i = 0; i < hosts_[rank].issued; ++i) {
    const Order::LaunchNodes& launch = order_.launches()[to_index(own[to_index(i)])];
    if (!nodes_[launch.end].done) return unfinished(launch.end);
  }
  RESHARD_CHECK(false, "a full launch queue without launches");
}

std::optional<OpId> Program::missing_of(OpId op) const {
  if (operations_[op].after_left == 0) return std::nullopt;
  const std::vector<OpId>& after = workload_.operations[to_index(op)].after;
  return *std::find_if(after.begin(), after.end(), [this](OpId each) { return !complete(each); });
}

Program::Obstacle Program::obstacle_of(std::int32_t gate) const {
  using Kind = Obstacle::Kind;
  Rank rank = order_.rank_of(gate);
  const Order::Predecessors& predecessors = order_.predecessors(gate);
  for (auto [node, kind] : {std::pair{predecessors.stream, Kind::Stream},
                            std::pair{predecessors.communicator, Kind::Communicator},
                            std::pair{predecessors.host, Kind::Host}})
    if (node != Order::kNone && !nodes_[node].done) return {kind, unfinished(node), rank};
  if (predecessors.launch != Order::kNone && !nodes_[predecessors.launch].started)
    return {Kind::Launch, unfinished(predecessors.launch), rank};
  if (!order_.is_place(gate))
    for (std::int32_t place : order_.batch_of(gate))
      if (std::optional<OpId> missing = missing_of(order_.op_of(place)))
        return {Kind::After, *missing, rank};
  RESHARD_CHECK(!hosts_.empty(), "a launch that waits for nothing");
  return {Kind::Queue, first_pending(rank), rank};
}

Program::Obstacle Program::obstacle(OpId op) const {
  if (std::optional<OpId> missing = missing_of(op)) return {Obstacle::Kind::After, *missing, {}};
  for (std::int32_t place = order_.first_of(op); place < order_.end_of(op); ++place)
    if (!nodes_[place].started) return obstacle_of(order_.gate_of(place));
  return {};
}

namespace {

std::string text(const Program::Obstacle& obstacle) {
  using Kind = Program::Obstacle::Kind;
  std::size_t op = to_index(obstacle.op);
  std::int32_t rank = to_int(obstacle.rank);
  switch (obstacle.kind) {
    case Kind::None:
      return "has started everywhere";
    case Kind::After:
      return fmt::format("comes after operation {}", op);
    case Kind::Stream:
      return fmt::format("on rank {} is queued after operation {}", rank, op);
    case Kind::Communicator:
      return fmt::format("on rank {} is queued after operation {} of its communicator", rank, op);
    case Kind::Host:
      return fmt::format("on rank {} is issued after operation {}", rank, op);
    case Kind::Launch:
      return fmt::format("on rank {} is launched after operation {}", rank, op);
    case Kind::Queue:
      return fmt::format("on rank {} waits for a full launch queue that holds operation {}", rank,
                         op);
  }
  return "";
}

}  // namespace

std::string Program::stuck() const {
  std::string out;
  std::size_t named = 0, left = operations_.size() - complete_;
  for (std::size_t i = 0; i < operations_.size() && named < 5; ++i) {
    auto op = id_of<OpId>(i);
    if (complete(op)) continue;
    out += fmt::format("{}operation {} ({}) {}", named == 0 ? "" : "; ", i,
                       reshard::text(workload_.operations[i]), text(obstacle(op)));
    ++named;
  }
  return left > named ? fmt::format("{}; and {} more", out, left - named) : out;
}

}  // namespace reshard::sim
