// SPDX-License-Identifier: BSD-3-Clause
// The longest path (declared in operation_bound.h): the order of the engine's program, with bounds
// in place of transfers. A part is released when the part before it on its stream is done and all
// that its operation names in `after` is complete; both only ever raise the time at which it may
// start.
#include <algorithm>
#include <limits>

#include "core/base/errors.h"
#include "sim/network/streams.h"
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
      : workload_(workload),
        bounds_(bounds),
        streams_(workload),
        operations_(workload.operations.size()),
        parts_(streams_.places.size()) {
    for (const Streams::Place& place : streams_.places)
      if (place.next >= 0) ++parts_[static_cast<std::size_t>(place.next)].waits;
    for (std::size_t op = 0; op < operations_.size(); ++op) {
      operations_[op].parts_left =
          static_cast<std::size_t>(streams_.end_of(op) - streams_.first_of(op));
      operations_[op].after_left = workload.operations[op].after.size();
    }
  }

  std::int64_t run() {
    for (std::size_t op = 0; op < operations_.size(); ++op)
      if (operations_[op].after_left == 0) pending_.push_back(op);
    release_pending();
    while (!ready_.empty()) {
      std::int32_t place = ready_.back();
      ready_.pop_back();
      start(place);
    }
    RESHARD_CHECK(complete_ == operations_.size(),
                  "a path through operations that wait for each other");
    return end_ps_;
  }

 private:
  struct Part {
    int waits = 1;  // for `after`, and for the part before it
    std::int64_t start_ps = 0;
  };
  struct State {
    std::size_t parts_left = 0, after_left = 0;
    std::int64_t first_start_ps = std::numeric_limits<std::int64_t>::max(), last_ps = 0;
  };

  void release(std::int32_t place, std::int64_t at_ps) {
    Part& part = parts_[static_cast<std::size_t>(place)];
    part.start_ps = std::max(part.start_ps, at_ps);
    if (--part.waits == 0) ready_.push_back(place);
  }

  void release_all(std::size_t op) {
    std::int64_t at_ps = operations_[op].last_ps;
    for (std::int32_t i = streams_.first_of(op); i < streams_.end_of(op); ++i) release(i, at_ps);
    if (operations_[op].parts_left == 0) complete(op, at_ps);
  }

  void start(std::int32_t place) {
    auto op = static_cast<std::size_t>(streams_.places[static_cast<std::size_t>(place)].op);
    std::int32_t first = streams_.first_of(op);
    State& state = operations_[op];
    const OperationBound& bound = *bounds_[op];
    bool rendezvous = std::holds_alternative<Message>(workload_.operations[op].body);
    std::int64_t start_ps = parts_[static_cast<std::size_t>(place)].start_ps,
                 done_ps = later(start_ps, bound.part_ps[static_cast<std::size_t>(place - first)]);
    state.first_start_ps = std::min(state.first_start_ps, start_ps);
    state.last_ps = std::max(state.last_ps, done_ps);
    --state.parts_left;
    // Neither end of a message is done before both are there.
    if (!rendezvous) finish(place, done_ps);
    if (state.parts_left > 0) return;
    for (std::int32_t i = first; rendezvous && i < streams_.end_of(op); ++i)
      finish(i, state.last_ps);
    complete(op, std::max(state.last_ps, later(state.first_start_ps, bound.time_ps)));
  }

  void finish(std::int32_t place, std::int64_t done_ps) {
    std::int32_t next = streams_.places[static_cast<std::size_t>(place)].next;
    if (next >= 0) release(next, done_ps);
  }

  void complete(std::size_t op, std::int64_t at_ps) {
    end_ps_ = std::max(end_ps_, at_ps);
    ++complete_;
    for (std::int32_t dependent : streams_.dependents[op]) {
      State& next = operations_[static_cast<std::size_t>(dependent)];
      // Before its parts start, last_ps is the time at which all that it comes after is complete.
      next.last_ps = std::max(next.last_ps, at_ps);
      if (--next.after_left == 0) pending_.push_back(static_cast<std::size_t>(dependent));
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
  const Streams streams_;
  std::vector<State> operations_;
  std::vector<Part> parts_;          // by place
  std::vector<std::int32_t> ready_;  // places
  std::vector<std::size_t> pending_;
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
