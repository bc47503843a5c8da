// SPDX-License-Identifier: BSD-3-Clause
// The progress of each rank in a workload: which operations have started on it, and what can start
// next.
//
// The order (order.h) defines what waits for what. A place is done when all its parts
// (operation_run.h) are, and an operation is complete when all its places are done; a setup begins
// when all its places have started. If the launch queue is bounded, a rank issues its next launch
// only while fewer launches than that bound are issued but not done. Everything that happens at one
// instant passes through one queue, first come first served, so neither chains of operations nor
// streams of any length need recursion.
//
// The program knows no topology and no clock: it reports which transfers and sleeps begin, and is
// notified when they end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/grouped.h"
#include "core/plan/executor.h"
#include "core/traffic/workload.h"
#include "sim/network/operation_run.h"
#include "sim/network/order.h"

namespace reshard::sim {

// A part that goes on at a known time.
struct Sleep {
  OpId op;
  std::int32_t part;
  Rank rank;
  std::int64_t duration_ps;
  std::int32_t after;  // what it waited for
};

// Called for a step when all its parts are about to begin and nothing else moves; `ranks` by part.
// Returns the duration of each part if known, otherwise null. `together`: only if all parts take
// equally long.
using TakeWhole = std::function<const std::vector<std::int64_t>*(
    const Transfers&, std::span<const Rank> ranks, bool together)>;

struct ProgramOptions {
  std::vector<Span>* spans = nullptr;  // every part that is done is recorded there
  Carriers carriers = {};
  const WaitLog* waits = nullptr;  // filled with what everything waited for
  TakeWhole take_whole = {};
  const Order* order = nullptr;   // of the workload; null: by the default rules
  std::int64_t launch_queue = 0;  // limit of launches per rank that are issued but not done; 0:
                                  // none
};

class Program {
 public:
  // Ranks must be in 0 .. devices-1, else throws InputError. All arguments must outlive the
  // program.
  Program(const Workload& workload, std::int32_t devices, ProgramOptions options);

  // Does all that can happen at this instant; appends what begins now.
  void advance(std::int64_t now_ps, std::vector<Transit>& transits, std::vector<Sleep>& sleeps);
  // To be followed by advance() at the same instant.
  void arrived(const Transit& transit, std::int32_t wait = WaitLog::kNone);
  void woken(OpId op, std::int32_t part, std::int32_t wait = WaitLog::kNone);
  // What a transfer that can begin waited for.
  std::int32_t waited(const Transit& transit) const;

  // Whether advance() would do something.
  bool busy() const { return !tasks_.empty(); }
  bool complete() const { return complete_ == operations_.size(); }
  bool complete(OpId op) const {
    const OperationState& state = operations_[op];
    return state.places_left == 0 && (has_places(op) || state.after_left == 0);
  }
  const Order& order() const { return order_; }
  // Null before the operation's first start and after its completion.
  const OperationRun* run_of(OpId op) const { return operations_[op].run.get(); }

  // Why an operation cannot go on.
  struct Obstacle {
    enum class Kind : std::uint8_t {
      None,          // it has started everywhere
      After,         // it comes after `op`
      Stream,        // on `rank`, it waits for `op` before it on its stream
      Communicator,  // the same on its communicator
      Host,          // on `rank`, the host waits for the end of `op`
      Launch,        // on `rank`, the launch order wants `op` to begin first
      Queue          // on `rank`, the launch queue is full, and `op` in it is not done
    } kind = Kind::None;
    OpId op{0};
    Rank rank{0};
  };
  // The first obstacle found, place by place.
  Obstacle obstacle(OpId op) const;
  // The first operations that are not complete, and what each waits for.
  std::string stuck() const;

 private:
  struct OperationState {
    std::int32_t places_left = 0, to_start = 0, after_left = 0;
    std::unique_ptr<OperationRun> run;  // from the first start to the completion
  };
  // State of a node of the order.
  struct NodeState {
    std::int32_t waits = 0;
    bool started = false, done = false;
  };
  // How many launches a rank has issued, and how many of them are not done.
  struct HostState {
    std::int32_t issued = 0, pending = 0;
  };
  struct Task {
    enum class Kind : std::uint8_t { Complete, Node, Part } kind;
    OpId op;
    std::int32_t index;
  };

  bool take_step(std::int64_t now_ps, std::vector<Sleep>& sleeps);
  void check_ranks(std::int32_t devices) const;
  bool has_places(OpId op) const { return order_.first_of(op) < order_.end_of(op); }
  void count_waits();
  void release_all(OpId op);
  void release(std::int32_t node, std::int32_t waited);
  void start_node(std::int32_t node);
  void start_place(std::int32_t place);
  void start_slot(OpId op, std::int32_t place);
  void run_part(const Task& task, std::int64_t now_ps, std::vector<Transit>& transits,
                std::vector<Sleep>& sleeps);
  void finish_node(std::int32_t node);
  void finish_place(std::int32_t place);
  void issue(Rank rank, std::int32_t waited);
  std::optional<OpId> missing_of(OpId op) const;
  OpId unfinished(std::int32_t node) const;
  OpId first_pending(Rank rank) const;
  Obstacle obstacle_of(std::int32_t gate) const;
  void finish_operation(OpId op);
  void push_ready(OpId op);
  template <class Id>
  void note(IndexVector<Id, std::int32_t>& list, Id id, std::int32_t wait) {
    if (waits_ != nullptr) waits_->keep_later(list[id], wait);
  }
  template <class Id>
  std::int32_t waited(const IndexVector<Id, std::int32_t>& list, Id id) const {
    return waits_ == nullptr ? WaitLog::kNone : list[id];
  }

  const Workload& workload_;
  ProgramOptions options_;
  const WaitLog* waits_;
  std::unique_ptr<const Order> own_order_;  // if none is passed in
  const Order& order_;
  IndexVector<OpId, OperationState> operations_;
  IndexVector<std::int32_t, NodeState> nodes_;
  IndexVector<Rank, HostState> hosts_;  // if the launch queue is bounded
  // If waits are recorded: what each operation, and each node with its parts, waited for last.
  IndexVector<OpId, std::int32_t> operation_waited_;
  IndexVector<std::int32_t, std::int32_t> node_waited_;
  std::vector<Task> tasks_;
  std::vector<Task> beginning_;      // parts that begin their first round
  std::vector<std::int32_t> ready_;  // reused between calls
  std::size_t complete_ = 0;
};

}  // namespace reshard::sim
