// SPDX-License-Identifier: BSD-3-Clause
// One operation of a workload while it runs: which *parts* it has and how far each one is.
//
// A part is one rank's share of one step; an operation without steps has one step of its own, so
// compute, messages, bare collectives and plans are one case here. A part
//
//     waits   until the slot's parts of the steps in `after` are done
//     runs    round after round; in a round it sends and receives some transfers, which start when
//             both their ends are in it, and the next round begins when all of them are complete.
//             An exchange has one round, a collective those of its expansion; copy, fill and reduce
//             have none
//     is done after its last round, or for compute after its duration
//
// Slots number the ranks of the operation. Transfers are worked out from the plan or the expansion
// when they are due; nothing is stored per transfer of a collective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/schedule/transfers.h"
#include "core/schedule/workload.h"
#include "sim/network/transit.h"

namespace reshard::sim {

class OperationRun {
 public:
  // `ranks` by slot; both must outlive the run. Throws InputError for a bare collective that names
  // a rank twice, and for any of more than 2^34 transfers or 2^62 bytes.
  OperationRun(OpId id, const Operation& operation, std::span<const Rank> ranks);

  Rank rank_of(std::int32_t part) const {
    return ranks_[static_cast<std::size_t>(parts_[static_cast<std::size_t>(part)].slot)];
  }
  Slot slot_of(std::int32_t part) const { return parts_[static_cast<std::size_t>(part)].slot; }
  // The plan's step; -1 for an operation without steps.
  std::int32_t step_of(std::int32_t part) const {
    return has_plan_ ? parts_[static_cast<std::size_t>(part)].step : -1;
  }
  std::int64_t start_ps(std::int32_t part) const {
    return parts_[static_cast<std::size_t>(part)].start_ps;
  }

  // The slot starts the operation: appends its parts that wait for nothing.
  void start_slot(Slot slot, std::vector<std::int32_t>& ready) const;
  bool slot_done(Slot slot) const { return parts_left_[static_cast<std::size_t>(slot)] == 0; }

  enum class Progress : std::uint8_t { Waits, Sleeps, Done };
  // The part begins, or goes on because its round or its sleep is over. Appends the transfers that
  // can start because this part was the later of their ends. Waits: for transfers. Sleeps: for
  // duration_ps of its step, then go on. Done: see finish().
  Progress go_on(std::int32_t part, std::int64_t now_ps, std::vector<Transit>& transits);
  std::int64_t duration_ps() const { return duration_ps_; }
  // One transfer of the part is complete; true when that was the last of its round.
  bool arrived(std::int32_t part) { return --parts_[static_cast<std::size_t>(part)].pending == 0; }
  // The part is done: appends the parts of its slot that waited for nothing else.
  void finish(std::int32_t part, std::vector<std::int32_t>& ready);

 private:
  // What a step does, beside the dependencies.
  struct StepRun {
    std::int32_t first_part = 0;
    std::vector<std::int32_t> dependents;  // steps that name this one in `after`
    Transfers transfers = Transfers::none(0);
  };
  struct Part {
    Slot slot;
    std::int32_t step;
    std::int32_t waits = 0;
    std::int32_t round = -1;  // -1 before it starts
    std::int32_t pending = 0;
    std::int64_t start_ps = 0;
  };

  void build_plan(const Plan& plan);
  Transfers transfers_of(const Operation& operation) const;
  // Call in the order of steps_, once per step.
  void add_parts(StepRun& step, Transfers transfers);
  void index_slots();
  void count_waits(const Plan& plan);
  std::int32_t part_at(Slot slot, std::int32_t step) const;  // -1 where the slot has none
  void meet(const Transit& transit, std::int32_t part, std::vector<Transit>& transits);

  OpId id_;
  std::span<const Rank> ranks_;
  bool has_plan_ = false;
  std::int64_t duration_ps_ = 0;
  std::vector<StepRun> steps_;
  std::vector<Part> parts_;  // step after step
  // Parts by slot, ascending by step.
  std::vector<std::size_t> first_of_slot_;
  std::vector<std::int32_t> of_slot_;
  std::vector<std::int32_t> parts_left_;
};

}  // namespace reshard::sim
