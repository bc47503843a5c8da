// SPDX-License-Identifier: BSD-3-Clause
// The proof that a plan is right, from index sets alone.
//
// The plan is run symbolically. For each rank and buffer the contents are disjoint boxes, each
// either padding or "global box + which addends were folded + divisor"; every step moves such
// boxes. At the end each destination element must hold exactly its request's value, or padding
// where that value is zero. Checked on the way: everything read was written, by a step that the
// reader is ordered after on its rank; nothing is written twice; boxes are inside their buffers;
// peers, sizes, groups and shapes match; steps depend on earlier ones only; on every rank, steps of
// a stage come after all steps of the stages before it. Both ends of a message are parts of one
// step, so a plan that passes can be issued in listed order without deadlock.
// Cost: linear in messages and boxes, except for sorting.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/schedule/lowering.h"
#include "core/schedule/rank_schedule.h"

namespace reshard {

// Why a plan is wrong.
struct Refutation {
  std::optional<StepId> step;  // none: the plan as a whole, or its final state
  std::string what;            // one sentence
  // Index of the part in the step's own list: a rank's part, a message or a group. None: the step
  // as a whole.
  std::optional<std::size_t> part = {};
};

struct ProofResult {
  std::optional<Refutation> refutation;  // none: the plan is proved
  // Padding received from other ranks, per step, in bytes, with each collective's default
  // expansion. Only set if proved.
  std::vector<std::int64_t> padding_bytes;
  bool proved() const { return !refutation.has_value(); }
};

ProofResult check_plan(const Plan& plan);

// Whether operations do what the plan states when they run step by step in listed order, as in
// executors that reach all memory. They run on the same symbolic memory as the proof; `run`
// produces the operations of one step. The plan must be proved.
using RunStep = std::function<void(StepId, Operations&)>;
std::optional<Refutation> check_operations(const Plan& plan, const RunStep& run);

// In debug builds, runs check_operations on a proved plan before its operations run, and throws a
// CheckFailure that states what is wrong. Does nothing in other builds.
void debug_check_operations(const Plan& plan, const RunStep& run);

// For plans made by this library: throws CheckFailure if refuted.
ProofResult prove(const Plan& plan);

// ---- The part of the proof that needs no contents: every step is well formed (plan.h). All
// indices of a plan that passes are in range.

std::optional<Refutation> check_structure(const Plan& plan);

// ---- Whether what ranks do is what the plan states: the schedules of all ranks run against each
// other on the proof's symbolic memory, with messages matched box by box.

// The plan must be proved; `schedules` are those of all its slots.
std::optional<Refutation> check_schedules(const Plan& plan,
                                          const std::vector<RankSchedule>& schedules);

// rank_schedules, checked in debug builds if the plan is proved; a CheckFailure states what is
// wrong.
std::vector<RankSchedule> checked_schedules(const Plan& plan, std::span<const Slot> slots,
                                            const SchedulePolicy& policy);

}  // namespace reshard
