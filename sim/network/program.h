// SPDX-License-Identifier: BSD-3-Clause
// How far each rank is in a workload: which operations have started on it, and what may start next.
//
// An operation has a *place* per rank that takes part, in that rank's stream. A place starts when
// the operation's `after` are all complete and the place before it on the stream is done; it is
// done when all its parts (operation_run.h) are, and the operation is complete when all its places
// are. Everything that happens at one instant is worked off from one queue, first come first
// served, so that neither chains of operations nor streams of any length need recursion.
//
// The program knows no topology and no clock: it says which transfers and sleeps begin, and is told
// when they end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/timeline.h"
#include "core/schedule/workload.h"
#include "sim/network/operation_run.h"
#include "sim/network/transit.h"

namespace reshard::sim {

// A part that goes on at a known time.
struct Sleep {
  OpId op;
  std::int32_t part;
  std::int64_t duration_ps;
};

class Program {
 public:
  // Ranks must lie in 0 .. devices-1, else InputError. With `spans`, every part that is done is
  // recorded there. Both must outlive the program.
  Program(const Workload& workload, std::int32_t devices, std::vector<Span>* spans);

  // Does all that can happen at this instant; appends what begins now.
  void advance(std::int64_t now_ps, std::vector<Transit>& transits, std::vector<Sleep>& sleeps);
  // To be followed by advance() at the same instant.
  void arrived(const Transit& transit);
  void woken(const Sleep& sleep) { tasks_.push_back({Task::Kind::Part, sleep.op, sleep.part}); }

  // advance() would do something.
  bool busy() const { return !tasks_.empty(); }
  bool complete() const { return complete_ == operations_.size(); }
  bool complete(OpId op) const {
    const OperationState& state = operations_[to_index(op)];
    return state.places_left == 0 && (state.place_count > 0 || state.after_left == 0);
  }
  // The first operations that are not complete and what each waits for.
  std::string stuck() const;

 private:
  struct OperationState {
    std::int32_t first_place = 0, place_count = 0, places_left = 0;
    std::int32_t after_left = 0;
    std::unique_ptr<OperationRun> run;  // from the first start to the completion
  };
  struct Place {
    std::int32_t op;
    std::int32_t next = -1;  // the place after it on the stream
    std::int32_t waits = 0;  // 1 for the place before it, 1 for the operation's `after`
    bool started = false, done = false;
  };
  struct Task {
    enum class Kind : std::uint8_t { Complete, Place, Part } kind;
    OpId op;
    std::int32_t index;
  };
  struct StreamEntry;

  void add_places(std::int32_t devices);
  void link_streams();
  void link_after();
  void release(std::int32_t place);
  void start_place(std::int32_t place);
  void run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                std::vector<Sleep>& sleeps);
  void finish_place(std::int32_t place);
  void finish_operation(std::int32_t op);
  void push_ready(OpId op);
  std::string why_stuck(std::size_t op) const;

  const Workload& workload_;
  std::vector<Span>* spans_;
  std::vector<OperationState> operations_;
  std::vector<Rank> ranks_;  // by place; an operation's are consecutive
  std::vector<Place> places_;
  // Operations that name an operation in `after`.
  std::vector<std::size_t> first_dependent_;
  std::vector<std::int32_t> dependents_;
  std::vector<Task> tasks_;
  std::vector<std::int32_t> ready_;  // reused between calls
  std::size_t complete_ = 0;
};

}  // namespace reshard::sim
