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
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/grouped.h"
#include "core/plan/executor.h"
#include "core/traffic/workload.h"
#include "sim/network/operation_run.h"

namespace reshard::sim {

// A workload's order: where its operations stand in the streams of their ranks, and who waits for
// whom. A message to its own rank and stream has one place.
struct Streams {
  struct Place {
    OpId op;
    std::int32_t next = -1;  // the place after it on the stream; -1 at the end
  };

  explicit Streams(const Workload& workload);

  std::int32_t first_of(OpId op) const { return first_[op]; }
  std::int32_t end_of(OpId op) const { return first_[to_index(op) + 1]; }

  IndexVector<std::int32_t, Place> places;  // operation after operation
  IndexVector<std::int32_t, Rank> ranks;    // by place
  Grouped<OpId> dependents;                 // by operation: those that name it in `after`

 private:
  void add_places(const Workload& workload);
  void link(const Workload& workload);

  IndexVector<OpId, std::int32_t> first_;  // place, by operation; one more at the end
};

// A part that goes on at a known time.
struct Sleep {
  OpId op;
  std::int32_t part;
  Rank rank;
  std::int64_t duration_ps;
  std::int32_t after;  // what it waited for
};

// Asked for a step that all its parts are about to begin, while nothing else moves; `ranks` by
// part. Where it is known what the step takes, the answer is that by part, else nothing.
// `together`: only where all parts take the same.
using TakeWhole = std::function<const std::vector<std::int64_t>*(
    const Transfers&, std::span<const Rank> ranks, bool together)>;

class Program {
 public:
  // Ranks must lie in 0 .. devices-1, else InputError. With `spans`, every part that is done is
  // recorded there, with `waits` what everything waited for. All must outlive the program.
  Program(const Workload& workload, std::int32_t devices, std::vector<Span>* spans,
          Carriers carriers, const WaitLog* waits = nullptr, TakeWhole take_whole = {});

  // Does all that can happen at this instant; appends what begins now.
  void advance(std::int64_t now_ps, std::vector<Transit>& transits, std::vector<Sleep>& sleeps);
  // To be followed by advance() at the same instant.
  void arrived(const Transit& transit, std::int32_t wait = WaitLog::kNone);
  void woken(OpId op, std::int32_t part, std::int32_t wait = WaitLog::kNone);
  // What a transfer that can begin waited for.
  std::int32_t waited(const Transit& transit) const;

  // advance() would do something.
  bool busy() const { return !tasks_.empty(); }
  bool complete() const { return complete_ == operations_.size(); }
  bool complete(OpId op) const {
    const OperationState& state = operations_[op];
    return state.places_left == 0 && (has_places(op) || state.after_left == 0);
  }
  // The first operations that are not complete and what each waits for.
  std::string stuck() const;

 private:
  struct OperationState {
    std::int32_t places_left = 0, after_left = 0;
    std::unique_ptr<OperationRun> run;  // from the first start to the completion
  };
  // Of a place: it waits for the operation's `after`, counted as one, and for the place before it.
  struct PlaceState {
    std::int8_t waits = 1;
    bool started = false;
  };
  struct Task {
    enum class Kind : std::uint8_t { Complete, Place, Part } kind;
    OpId op;
    std::int32_t index;
  };

  bool take_step(std::int64_t now_ps, std::vector<Sleep>& sleeps);
  void check_ranks(std::int32_t devices) const;
  bool has_places(OpId op) const { return streams_.first_of(op) < streams_.end_of(op); }
  void release_all(OpId op);
  void release(std::int32_t place, std::int32_t waited);
  void start_place(std::int32_t place);
  void run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                std::vector<Sleep>& sleeps);
  void finish_place(std::int32_t place);
  void finish_operation(OpId op);
  void push_ready(OpId op);
  std::string why_stuck(OpId op) const;
  template <class Id>
  void note(IndexVector<Id, std::int32_t>& list, Id id, std::int32_t wait) {
    if (waits_ != nullptr) waits_->keep_later(list[id], wait);
  }
  template <class Id>
  std::int32_t waited(const IndexVector<Id, std::int32_t>& list, Id id) const {
    return waits_ == nullptr ? WaitLog::kNone : list[id];
  }

  const Workload& workload_;
  std::vector<Span>* spans_;
  Carriers carriers_;
  const WaitLog* waits_;
  TakeWhole take_whole_;
  const Streams streams_;
  IndexVector<OpId, OperationState> operations_;
  IndexVector<std::int32_t, PlaceState> places_;
  // Where waits are recorded: what each operation and each place, and its parts, waited for last.
  IndexVector<OpId, std::int32_t> operation_waited_;
  IndexVector<std::int32_t, std::int32_t> place_waited_;
  std::vector<Task> tasks_;
  std::vector<Task> beginning_;      // parts that come to their first round
  std::vector<std::int32_t> ready_;  // reused between calls
  std::size_t complete_ = 0;
};

}  // namespace reshard::sim
