// SPDX-License-Identifier: BSD-3-Clause
// The longest path (declared in operation_bound.h): the order of the engine's program, with bounds
// in place of transfers. A part is released when the part before it on its stream is done and all
// that its operation names in `after` is complete; both only ever raise the time at which it may
// start.
#include <algorithm>
#include <limits>
#include <tuple>

#include "core/base/errors.h"
#include "sim/trace/operation_bound.h"

namespace reshard::sim {
namespace {

std::int64_t later(std::int64_t at, std::int64_t by) {
  return by > std::numeric_limits<std::int64_t>::max() - at
             ? std::numeric_limits<std::int64_t>::max()
             : at + by;
}

class LongestPath {
 public:
  LongestPath(const Workload& workload,
              const std::vector<std::shared_ptr<const OperationBound>>& bounds)
      : workload_(workload), bounds_(bounds), operations_(workload.operations.size()) {
    add_parts();
    link_streams();
    for (std::size_t op = 0; op < operations_.size(); ++op)
      for (OpId before : workload.operations[op].after) {
        operations_[to_index(before)].dependents.push_back(op);
        ++operations_[op].after_left;
      }
  }

  std::int64_t run() {
    for (std::size_t op = 0; op < operations_.size(); ++op)
      if (operations_[op].after_left == 0) pending_.push_back(op);
    release_pending();
    while (!ready_.empty()) {
      std::size_t part = ready_.back();
      ready_.pop_back();
      start(part);
    }
    RESHARD_CHECK(complete_ == operations_.size(),
                  "a path through operations that wait for each other");
    return end_ps_;
  }

 private:
  struct Part {
    std::size_t op, next = kNone;
    int waits = 1;  // for `after`, and for the part before it
    std::int64_t start_ps = 0;
  };
  struct State {
    std::size_t first_part = 0, parts = 0, parts_left = 0, after_left = 0;
    std::int64_t first_start_ps = std::numeric_limits<std::int64_t>::max(), last_ps = 0;
    std::vector<std::size_t> dependents;
  };
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void add_parts() {
    for (std::size_t op = 0; op < operations_.size(); ++op) {
      std::vector<Rank> ranks = ranks_of(workload_.operations[op]);
      operations_[op].first_part = parts_.size();
      operations_[op].parts = operations_[op].parts_left = ranks.size();
      ranks_.insert(ranks_.end(), ranks.begin(), ranks.end());
      parts_.resize(ranks_.size(), Part{op});
    }
  }

  void link_streams() {
    // Rank, stream, place among the operations, part.
    std::vector<std::tuple<Rank, std::int32_t, std::size_t, std::size_t>> order;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      std::size_t op = parts_[part].op;
      const Operation& operation = workload_.operations[op];
      const auto* message = std::get_if<Message>(&operation.body);
      if (message != nullptr && part != operations_[op].first_part)
        order.emplace_back(ranks_[part], message->destination_stream,
                           to_index(message->destination_place), part);
      else
        order.emplace_back(ranks_[part], operation.stream, op, part);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 1; i < order.size(); ++i) {
      auto [rank, stream, place, part] = order[i];
      auto [rank_before, stream_before, place_before, before] = order[i - 1];
      if (rank != rank_before || stream != stream_before) continue;
      parts_[before].next = part;
      ++parts_[part].waits;
    }
  }

  void release(std::size_t part, std::int64_t at_ps) {
    parts_[part].start_ps = std::max(parts_[part].start_ps, at_ps);
    if (--parts_[part].waits == 0) ready_.push_back(part);
  }

  void release_all(std::size_t op) {
    State& state = operations_[op];
    for (std::size_t i = 0; i < state.parts; ++i) release(state.first_part + i, state.last_ps);
    if (state.parts == 0) complete(op, state.last_ps);
  }

  void start(std::size_t part) {
    std::size_t op = parts_[part].op;
    State& state = operations_[op];
    const OperationBound& bound = *bounds_[op];
    bool rendezvous = std::holds_alternative<Message>(workload_.operations[op].body);
    std::int64_t start_ps = parts_[part].start_ps,
                 done_ps = later(start_ps, bound.part_ps[part - state.first_part]);
    state.first_start_ps = std::min(state.first_start_ps, start_ps);
    state.last_ps = std::max(state.last_ps, done_ps);
    --state.parts_left;
    // Neither end of a message is done before both are there.
    if (!rendezvous) finish(part, done_ps);
    if (state.parts_left > 0) return;
    for (std::size_t i = 0; rendezvous && i < state.parts; ++i)
      finish(state.first_part + i, state.last_ps);
    complete(op, std::max(state.last_ps, later(state.first_start_ps, bound.time_ps)));
  }

  void finish(std::size_t part, std::int64_t done_ps) {
    if (parts_[part].next != kNone) release(parts_[part].next, done_ps);
  }

  void complete(std::size_t op, std::int64_t at_ps) {
    end_ps_ = std::max(end_ps_, at_ps);
    ++complete_;
    for (std::size_t dependent : operations_[op].dependents) {
      State& next = operations_[dependent];
      // Before its parts start, last_ps is the time at which all that it comes after is complete.
      next.last_ps = std::max(next.last_ps, at_ps);
      if (--next.after_left == 0) pending_.push_back(dependent);
    }
    release_pending();
  }

  // Operations without ranks complete at once: a loop, since chains of them may be long.
  void release_pending() {
    if (releasing_) return;
    releasing_ = true;
    while (!pending_.empty()) {
      std::size_t next = pending_.back();
      pending_.pop_back();
      release_all(next);
    }
    releasing_ = false;
  }

  const Workload& workload_;
  const std::vector<std::shared_ptr<const OperationBound>>& bounds_;
  std::vector<State> operations_;
  std::vector<Part> parts_;
  std::vector<Rank> ranks_;  // by part
  std::vector<std::size_t> ready_, pending_;
  bool releasing_ = false;
  std::size_t complete_ = 0;
  std::int64_t end_ps_ = 0;
};

}  // namespace

std::int64_t longest_path_ps(const Workload& workload,
                             const std::vector<std::shared_ptr<const OperationBound>>& bounds) {
  return LongestPath(workload, bounds).run();
}

}  // namespace reshard::sim
