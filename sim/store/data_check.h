// SPDX-License-Identifier: BSD-3-Clause
// A plan's bytes moved and compared: every source element filled by Pattern, every destination
// element checked against what the request defines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/pattern/pattern.h"
#include "core/plan/executor.h"
#include "sim/study/run_facts.h"

namespace reshard::sim {

// The same request on a smaller tensor: halved until the tensor is at most 1/2^halvings of its
// size, rounded up, or can shrink no more. halvings 0 .. 62.
//
// Dims are halved one at a time. First those that stay divisible by all that cuts them on both
// sides, the one with the longest pieces before the others, so that all local sizes shrink in
// proportion; then uneven ones, rounded up, as long as every shard that was empty stays empty and
// no other becomes so; only when none of these is left, any dim longer than 1.
Request shrunk(const Request& request, int halvings);

// Plans and proves a request, by the planner that made the plan at full size: what is checked small
// must be the strategy that is used large.
using MakePlan = std::function<std::shared_ptr<const Plan>(const Request& request)>;

// What the elements of a plan's tensors hold.
class PlanPatterns {
 public:
  // The plan must outlive it.
  explicit PlanPatterns(const Plan& plan);

  // Fills the sources of all tensors.
  void fill(PreparedPlan& prepared) const;
  // Compares a finished destination shard; nothing where all elements agree.
  std::optional<PatternMismatch> check(TensorId tensor, Rank rank,
                                       std::span<const std::byte> bytes) const;

 private:
  const Plan& plan_;
  IndexVector<TensorId, Pattern> patterns_;
};

using TakeShard = std::function<void(TensorId tensor, Rank rank, std::span<const std::byte> bytes)>;
// PreparedPlan::take of all tensors, one after the other.
void take_all(PreparedPlan& prepared, const Plan& plan, const TakeShard& take);

// Moves the bytes of `plan`, or, where store_bytes is above the budget, of a plan for a shrunk
// tensor, as small as it takes or as it gets. Without `replan` (a plan from elsewhere, or of
// several tensors) always of `plan`. Throws CheckFailure naming rank, global index,
// expected and found bits where an element is wrong; InputError, before any shard is allocated,
// where what is to be moved needs more than `memory_limit_bytes`.
DataReport move_and_check(std::shared_ptr<const Plan> plan, const MakePlan& replan,
                          std::int64_t budget_bytes, std::int64_t memory_limit_bytes);

}  // namespace reshard::sim
