// SPDX-License-Identifier: BSD-3-Clause
// One operation of a workload while it runs: its *parts* and their progress.
//
// A part is one rank's share of one step. An operation without steps counts as one step, so
// compute, messages, bare collectives and plans are one case here. A part
//
//     waits    until the slot's parts of the steps in `after` are done and, if its carrier runs
//              launches in turn, the slot's previous part that sends or receives
//     gathers  if the transport asks for it: until all parts of its group are there
//     runs     round after round; in a round it sends and receives some transfers, which start when
//              both their ends are in it, and the next round begins when all are complete. An
//              exchange has one round, a collective those of its expansion; copy, fill and reduce
//              have none
//     is done  after its last round, or for compute and setup after their duration
//
// Slots number the ranks of the operation. Transfers are computed from the plan or the expansion
// when they are due; nothing is stored per transfer of a collective.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/grouped.h"
#include "core/base/ids.h"
#include "core/traffic/transfers.h"
#include "core/traffic/workload.h"
#include "sim/network/carrier.h"
#include "sim/network/wait_log.h"

namespace reshard::sim {

// A transfer between two parts, which are numbered within the operation.
struct Transit {
  OpId op;
  std::int32_t step;  // of the plan; -1 if there is none
  Rank source, destination;
  std::int32_t source_part, destination_part;
  std::int64_t bytes;
  const Terms* terms = nullptr;  // null: those of the route; otherwise they live as long as the
                                 // operation
};

class OperationRun {
 public:
  // `ranks` by slot. `operation`, `ranks`, `carrier` (null: links alone) and `waits`
  // (null: not recorded) must outlive the run. Throws InputError for a bare collective that names a
  // rank twice, and for any with more than 2^34 transfers or 2^62 bytes.
  OperationRun(OpId id, const Operation& operation, std::span<const Rank> ranks, Carrier* carrier,
               const WaitLog* waits);

  Rank rank_of(std::int32_t part) const { return ranks_[to_index(parts_[part].slot)]; }
  Slot slot_of(std::int32_t part) const { return parts_[part].slot; }
  // The plan's step; -1 for an operation without steps.
  std::int32_t step_of(std::int32_t part) const { return has_plan_ ? parts_[part].step : -1; }
  std::int64_t start_ps(std::int32_t part) const { return parts_[part].start_ps; }

  // The slot starts the operation, after the wait `waited`: appends its parts that wait for
  // nothing.
  void start_slot(Slot slot, std::int32_t waited, std::vector<std::int32_t>& ready);
  bool slot_done(Slot slot) const { return parts_left_[slot] == 0; }

  // The parts of one step.
  struct Parts {
    std::int32_t step, first, count;
    bool has(std::int32_t part) const { return part >= first && part < first + count; }
  };
  Parts neighbouring_parts(std::int32_t part) const;
  const Transfers& transfers(const Parts& parts) const { return steps_[parts.step].transfers; }
  // Whether the part is about to begin its first round.
  bool begins_rounds(std::int32_t part) const {
    const StepRun& step = steps_[parts_[part].step];
    return parts_[part].round < 0 && step.transfers.rounds() > 0 &&
           (step.missing.empty() || parts_[part].gathered);
  }
  // Calls visit(source rank, destination rank, bytes) for each transfer of each step that is not a
  // collective, in no particular order.
  template <class Visit>
  void for_each_message(Visit&& visit) const {
    for (const StepRun& step : steps_) {
      auto rank_at = [&](std::int32_t part) { return rank_of(step.first_part + part); };
      const auto parts = static_cast<std::int32_t>(step.transfers.slots().size());
      for (std::int32_t part = 0; part < parts; ++part)
        step.transfers.for_each_message_sent(
            part, [&](std::int32_t from, std::int32_t to, std::int64_t bytes, const Terms*) {
              visit(rank_at(from), rank_at(to), bytes);
            });
    }
  }
  // Number of parts that are not done.
  std::int64_t parts_left() const;
  // The part begins now and skips all its rounds; it is done when it goes on.
  void pass_over(std::int32_t part, std::int64_t now_ps);

  enum class Progress : std::uint8_t { Waits, Sleeps, Done };
  // The part begins, or goes on because its round or its sleep is over. Appends the transfers that
  // can start because this part was the later of their ends. Waits: for transfers. Sleeps: for
  // duration_ps of its step, then go on. Done: see finish(). Appends to `ready` the parts that go
  // on because this was the last of its group to gather.
  Progress go_on(std::int32_t part, std::int64_t now_ps, std::vector<Transit>& transits,
                 std::vector<std::int32_t>& ready);
  std::int64_t duration_ps() const { return duration_ps_; }
  // One transfer of the part is complete; returns true if it was the last of its round.
  bool arrived(std::int32_t part, std::int32_t wait) {
    note(part, wait);
    return --parts_[part].pending == 0;
  }
  // The part's sleep is over.
  void woken(std::int32_t part, std::int32_t wait) { note(part, wait); }
  // The wait that the part waited for when it last went on.
  std::int32_t waited(std::int32_t part) const {
    return recording_ ? recording_->waited[part].last : WaitLog::kNone;
  }
  // The part is done: appends the parts of its slot that waited for nothing else.
  void finish(std::int32_t part, std::vector<std::int32_t>& ready);

 private:
  // A step, except what it depends on.
  struct StepRun {
    std::int32_t first_part = 0;
    std::vector<std::int32_t> dependents;  // steps that name this one in `after`
    Transfers transfers = Transfers::none(0);
    std::vector<std::int32_t> missing;  // by group that has to gather: parts not there yet
  };
  struct SlotStep {
    Slot slot;
    std::int32_t step;
    std::int32_t waits = 0;
    std::int32_t round = -1;  // -1 before it starts
    std::int32_t pending = 0;
    std::int64_t start_ps = 0;
    bool gathered = false;  // it has gathered
  };

  void gather(std::int32_t part, std::vector<std::int32_t>& ready);
  void build_plan(const Plan& plan, Carrier* carrier);
  Transfers transfers_of(const Operation& operation, Carrier* carrier) const;
  // Call in the order of steps_, once per step.
  void add_parts(StepRun& step, Transfers transfers);
  void index_parts(const Plan* plan);
  void put_in_turn(const Plan& plan, const Carrier& carrier);
  struct LinksOf {
    bool within = false, between = false;  // nodes
  };
  LinksOf links_of(std::int32_t part, const Carrier& carrier) const;
  std::int32_t part_at(Slot slot, std::int32_t step) const;  // -1 if the slot has none
  void check_at_once(const std::vector<Transit>& transits) const;
  void note(std::int32_t part, std::int32_t wait) {
    if (recording_) recording_->log.keep_later(recording_->waited[part].next, wait);
  }

  OpId id_;
  std::span<const Rank> ranks_;
  bool has_plan_ = false;
  std::int64_t duration_ps_ = 0;
  IndexVector<std::int32_t, StepRun> steps_;
  IndexVector<std::int32_t, SlotStep> parts_;  // step after step
  Grouped<std::int32_t> of_slot_;              // parts by slot, ascending by step
  // By part: the next on its stream, and on the links that it uses; -1: none. Empty: no order.
  using InTurn = std::array<std::int32_t, 3>;
  IndexVector<std::int32_t, InTurn> next_in_turn_;
  IndexVector<Slot, std::int32_t> parts_left_;
  // If waits are recorded, by part: the wait before the current round, and the one before the next.
  struct Waited {
    std::int32_t last = WaitLog::kNone, next = WaitLog::kNone;
  };
  struct Recording {
    const WaitLog& log;
    IndexVector<std::int32_t, Waited> waited;
  };
  std::unique_ptr<Recording> recording_;
};

}  // namespace reshard::sim
