// SPDX-License-Identifier: BSD-3-Clause
#include "sim/replay/deadlock.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/network/program.h"
#include "sim/replay/trace_workload.h"
#include "sim/trace/findings.h"

namespace reshard::sim {
namespace {

constexpr std::size_t kLongest = 400;  // characters of a sentence; longer cycles become a table
constexpr const char* kByHost = "its host";

// Keeps which rank waits for which in each operation, without any bytes.
class Meetings : public Carrier {
 public:
  Transfers step(const Plan& plan, const Step& step) override {
    Transfers given(plan, step);
    if (given.group_size() == 0) return given;
    Transfers out = Transfers::flows(given.slots(), {});
    out.gather(given.group_size());
    return out;
  }
  Transfers message(const PointToPoint& message) override {
    return Transfers::message(message.bytes);
  }
  // In a gather or scatter each rank waits only for the root; otherwise all wait for all.
  Transfers collective(const BareCollective& collective) override {
    if (collective.kind == BareKind::Gather || collective.kind == BareKind::Scatter)
      return Transfers::collective(collective);
    Transfers out = Transfers::none(static_cast<std::int32_t>(collective.ranks.size()));
    out.gather(static_cast<std::int32_t>(collective.ranks.size()));
    return out;
  }
};

// Unless an operation has different places on its ranks, or an `after` points forward, all ranks go
// through their operations in one common order, the trace's. Then nothing blocks: the first
// incomplete operation is the next one on all its ranks, whatever the launch queues hold.
bool may_block(const Workload& workload) {
  for (std::size_t op = 0; op < workload.operations.size(); ++op) {
    const Operation& operation = workload.operations[op];
    for (const Seat& seat : operation.seats)
      if (to_index(seat.at) != op) return true;
    for (OpId before : operation.after)
      if (to_index(before) >= op) return true;
  }
  return false;
}

void run_without_time(Program& program) {
  std::vector<Transit> transits;
  std::vector<Sleep> sleeps;
  while (program.busy()) {
    transits.clear();
    sleeps.clear();
    program.advance(0, transits, sleeps);
    for (const Transit& transit : transits) program.arrived(transit);
    for (const Sleep& sleep : sleeps) program.woken(sleep.op, sleep.part);
  }
}

// Finds the cycle of waits in a blocked program and describes it.
class Cycle {
 public:
  Cycle(const Trace& trace, const Workload& workload, const Program& program)
      : trace_(trace), workload_(workload), program_(program) {}

  TraceFinding finding() {
    walk();
    std::string what;
    for (std::size_t i = 0; i < cycle_.size(); ++i)
      if (what.size() <= kLongest) add(what, i);
    if (what.size() <= kLongest) {
      what = "operations wait for each other forever: " + what;
    } else {
      add_rows();
      what = fmt::format("operations of {} wait for each other forever, {} in a cycle",
                         ranks_words(listed_ranks()), finding_.cycle.size());
    }
    sort_once(finding_.lines);
    sort_once(finding_.ranks);
    finding_.what = fmt::format("{}:{}: {}", trace_.file, finding_.lines.front(), what);
    return std::move(finding_);
  }

 private:
  // Follows the obstacles from the first incomplete operation until one repeats.
  void walk() {
    OpId at{0};
    while (program_.complete(at)) at = OpId{static_cast<std::int32_t>(at) + 1};
    std::map<OpId, std::size_t> seen;
    std::vector<OpId> path;
    for (; seen.try_emplace(at, path.size()).second; at = program_.obstacle(at).op) {
      RESHARD_CHECK(program_.obstacle(at).kind != Program::Obstacle::Kind::None,
                    "an operation that waits for nothing");
      path.push_back(at);
    }
    cycle_.assign(path.begin() + static_cast<std::ptrdiff_t>(seen.at(at)), path.end());
    std::rotate(cycle_.begin(), std::min_element(cycle_.begin(), cycle_.end()), cycle_.end());
    for (OpId op : cycle_) {
      obstacles_.push_back(program_.obstacle(op));
      ranks_.push_back(obstacles_.back().kind == Program::Obstacle::Kind::After
                           ? ranks_of(workload_.operations[to_index(op)]).front()
                           : obstacles_.back().rank);
    }
  }

  // Describes the cycle as a table instead of a sentence.
  void add_rows() {
    finding_.lines.clear();
    finding_.ranks.clear();
    for (std::size_t i = 0; i < cycle_.size(); ++i) add_row(i);
    merge_setups();
    for (const TraceWait& row : finding_.cycle) {
      for (std::int64_t line : {row.line, row.predecessor, row.waits_for})
        finding_.lines.push_back(line);
      finding_.ranks.push_back(row.rank);
    }
  }

  void add_row(std::size_t i) {
    const Program::Obstacle& obstacle = obstacles_[i];
    std::size_t next = (i + 1) % cycle_.size();
    OpId here = stated_operation(workload_, cycle_[i], ranks_[i]);
    Rank there = obstacle.kind == Program::Obstacle::Kind::After ? ranks_[next] : obstacle.rank;
    auto line_of = [&](OpId op) { return trace_.line_of(op).number; };
    finding_.cycle.push_back({ranks_[i], line_of(here), held_by(obstacle, here),
                              line_of(stated_operation(workload_, obstacle.op, there)),
                              line_of(stated_operation(workload_, obstacle.op, ranks_[next])),
                              ranks_[next]});
  }

  // Reports consecutive setups before one line as one row.
  void merge_setups() {
    std::vector<TraceWait> rows = std::move(finding_.cycle);
    std::size_t count = rows.size();
    std::vector<bool> merged(count);
    for (std::size_t i = 0; i < count; ++i)
      merged[i] = rows[i].held_by == kByHost && rows[i].line == rows[i].predecessor;
    finding_.cycle.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (merged[i]) continue;
      for (std::size_t after = i + 1; merged[after % count] && after < i + count; ++after) {
        rows[i].waits_for = rows[after % count].waits_for;
        rows[i].of = rows[after % count].of;
      }
      finding_.cycle.push_back(rows[i]);
    }
  }

  std::vector<Rank> listed_ranks() const {
    std::vector<Rank> ranks = finding_.ranks;
    sort_once(ranks);
    return ranks;
  }

  std::string held_by(const Program::Obstacle& obstacle, OpId here) const {
    using Kind = Program::Obstacle::Kind;
    switch (obstacle.kind) {
      case Kind::Stream:
        return fmt::format("stream {}", trace_.operations[here].stream);
      case Kind::Communicator:
        return communicator_of(here);
      case Kind::After:
        return "after";
      case Kind::Host:
        return kByHost;
      case Kind::Launch:
        return "launch order";
      default:
        return "launch queue";
    }
  }

  // The operation's communicator can come from a policy and be unknown to the trace.
  std::string communicator_of(OpId here) const {
    std::int32_t communicator = trace_.operations[here].communicator;
    return communicator < 0 ? "its communicator" : communicator_text(trace_, communicator);
  }

  // "line 5 (recv on rank 1)"; a setup is named by the line that it precedes.
  std::string named(OpId run, Rank rank) {
    OpId op = stated_operation(workload_, run, rank);
    std::int64_t line = trace_.line_of(op).number;
    finding_.lines.push_back(line);
    finding_.ranks.push_back(rank);
    const auto* setup = std::get_if<Setup>(&workload_.operations[to_index(run)].body);
    if (setup != nullptr)
      return fmt::format("line {} ({} on rank {}, before which the hosts of {} meet)", line,
                         op_text(trace_.operations[op]), to_int(rank), ranks_words(setup->ranks));
    return fmt::format("line {} ({} on rank {})", line, op_text(trace_.operations[op]),
                       to_int(rank));
  }

  // Appends what the i-th operation waits for. If the cycle goes on from another line of that
  // operation, on another rank, appends that line, too.
  void add(std::string& what, std::size_t i) {
    const Program::Obstacle& obstacle = obstacles_[i];
    std::size_t next = (i + 1) % cycle_.size();
    OpId here = stated_operation(workload_, cycle_[i], ranks_[i]);
    if (i == 0) what = named(cycle_[0], ranks_[0]);
    Rank there_rank =
        obstacle.kind == Program::Obstacle::Kind::After ? ranks_[next] : obstacle.rank;
    OpId there = stated_operation(workload_, obstacle.op, there_rank),
         goes_on = stated_operation(workload_, obstacle.op, ranks_[next]);
    // Consecutive setups before one line are reported as one.
    if (there != here || obstacle.kind != Program::Obstacle::Kind::Host)
      what += fmt::format("{} {}{}", i == 0 ? "" : ", which", how(obstacle, here),
                          named(obstacle.op, there_rank));
    if (obstacle.kind == Program::Obstacle::Kind::Stream)
      what += fmt::format(" on stream {}", trace_.operations[here].stream);
    if (goes_on != there) what += fmt::format(", which meets {}", named(obstacle.op, ranks_[next]));
  }

  std::string how(const Program::Obstacle& obstacle, OpId here) const {
    using Kind = Program::Obstacle::Kind;
    switch (obstacle.kind) {
      case Kind::After:
        return "comes after ";
      case Kind::Communicator:
        return fmt::format("of {} comes after ", communicator_of(here));
      case Kind::Host:
        return "is issued after ";
      case Kind::Launch:
        return "is launched after ";
      case Kind::Queue:
        return "finds no room in a launch queue that waits for ";
      default:
        return "is queued after ";
    }
  }

  const Trace& trace_;
  const Workload& workload_;
  const Program& program_;
  std::vector<OpId> cycle_;                   // operations of the workload
  std::vector<Program::Obstacle> obstacles_;  // of each in cycle_
  std::vector<Rank> ranks_;                   // where each in cycle_ waits
  TraceFinding finding_;
};

}  // namespace

std::optional<TraceFinding> find_parent_mismatch(const Trace& trace, const Workload& workload,
                                                 const CommunicatorUse& use) {
  if (!use.absent.empty())
    return finding_of(
        trace, {use.first_of_parent}, use.absent, use.first_of_parent,
        fmt::format("the communicator of all ranks is created here, but {} never join{} it",
                    ranks_words(use.absent), use.absent.size() == 1 ? "s" : ""));
  if (use.parent_mismatches.empty()) return std::nullopt;
  const CommunicatorUse::ParentMismatch& parent_mismatches = use.parent_mismatches.front();
  OpId with = stated_operation(workload, parent_mismatches.op, parent_mismatches.with_parent),
       without = stated_operation(workload, parent_mismatches.op, parent_mismatches.without);
  return finding_of(
      trace, {with, without}, {parent_mismatches.with_parent, parent_mismatches.without}, with,
      fmt::format("{} on rank {} uses the communicator of all ranks, which rank {} has not created "
                  "when it reaches the {} in {}",
                  op_text(trace.operations[with]), to_int(parent_mismatches.with_parent),
                  to_int(parent_mismatches.without), op_text(trace.operations[without]),
                  lines_text(trace, {without})));
}

std::optional<TraceFinding> find_deadlock(const Trace& trace, const Workload& workload,
                                          const Order& order, std::int32_t devices,
                                          std::int64_t launch_queue) {
  if (!may_block(workload)) return std::nullopt;
  Meetings meetings;
  Program program(workload, devices,
                  {.carriers = {&meetings, {}}, .order = &order, .launch_queue = launch_queue});
  run_without_time(program);
  if (program.complete()) return std::nullopt;
  return Cycle(trace, workload, program).finding();
}

std::optional<TraceFinding> find_hang(const Trace& trace, const Workload& workload,
                                      const Order& order, const Topology& topology) {
  std::int64_t queue = topology.machine().figure(Figure::LaunchQueue).value_or(0) / kRatioOne;
  std::optional<TraceFinding> hang =
      find_deadlock(trace, workload, order, topology.devices(), queue);
  if (!hang && !order.rules().implicit_launch_order)
    hang = find_crossed_launches(trace, workload, order);
  return hang;
}

}  // namespace reshard::sim
