// SPDX-License-Identifier: BSD-3-Clause
// The proof that a plan is right, from index sets alone.
//
// The plan is run symbolically. Per rank and buffer the contents are kept as disjoint boxes, each
// either padding or "global box + which addends were folded + divisor"; every step moves such
// boxes. At the end each destination element must hold its request's value exactly, padding where
// that is zero. On the way: every read was written, by a step the reader is ordered after on its
// rank; nothing is written twice; boxes lie inside their buffers; peers, sizes, groups and shapes
// match; steps depend on earlier ones only. A message's two ends are parts of one step, so a plan
// that passes can be issued in listed order without deadlock. Cost: linear in messages and boxes
// but for sorting.
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
  std::optional<StepId> step;  // none: the plan as a whole, or its end state
  std::string what;            // one sentence
  // Of the step, in the order in which it lists them: a rank's part, a message, a group. None: the
  // step as a whole.
  std::optional<std::size_t> part = {};
};

struct ProofResult {
  std::optional<Refutation> refutation;  // none: the plan is proved
  // Padding received from other ranks, per step, in bytes, by each collective's default expansion.
  // Only where proved.
  std::vector<std::int64_t> padding_bytes;
  bool proved() const { return !refutation.has_value(); }
};

ProofResult check_plan(const Plan& plan);

// Whether operations do what the plan says, run step after step in listed order as executors that
// reach all memory do: the same symbolic memory under what is really run. `run` hands out those of
// one step. The plan must be proved.
using RunStep = std::function<void(StepId, Operations&)>;
std::optional<Refutation> check_operations(const Plan& plan, const RunStep& run);

// check_operations in debug builds, before operations are run, of plans that are proved; a
// CheckFailure says what is wrong. Other builds do nothing.
void debug_check_operations(const Plan& plan, const RunStep& run);

// For plans of our own making: throws CheckFailure when refuted.
ProofResult prove(const Plan& plan);

// ---- The part of the proof that needs no contents: that every step is well formed (plan.h). After
// it, all indices of the plan are in range.

std::optional<Refutation> check_structure(const Plan& plan);

// ---- Whether what ranks do means what the plan says: all ranks' schedules run against each other
// on the symbolic memory of the proof, messages matched box by box.

// The plan must be proved; `schedules` are those of all its slots.
std::optional<Refutation> check_schedules(const Plan& plan,
                                          const std::vector<RankSchedule>& schedules);

// rank_schedules. Debug builds check those of proved plans; a CheckFailure says what is wrong.
std::vector<RankSchedule> checked_schedules(const Plan& plan, std::span<const Slot> slots,
                                            const SchedulePolicy& policy);

}  // namespace reshard
