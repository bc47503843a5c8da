// SPDX-License-Identifier: BSD-3-Clause
// Checks a plan on real bytes: fills every source element by Pattern, runs the plan, and compares
// every destination element with what the request defines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/pattern/pattern.h"
#include "core/plan/executor.h"
#include "sim/store/stored_images.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"

namespace reshard::sim {

// The same request on a smaller tensor: its dims are halved until the tensor has at most
// 1/2^halvings of its elements, rounded up, or cannot shrink further. halvings: 0 .. 62.
//
// Halves one dim at a time. First come dims that stay divisible by everything that cuts them on
// both sides, the one with the longest pieces first, so that all local sizes shrink in proportion;
// then uneven dims, rounded up, as long as exactly the shards that were empty stay empty; when none
// of these is left, any dim longer than 1.
Request shrunk(const Request& request, int halvings);

// Plans and proves requests, by the planner that made the plan at full size: the check at reduced
// size must use the same strategy.
using MakePlan = std::function<std::shared_ptr<const Plan>(std::span<const Request> requests)>;

// The values of the elements of a plan's tensors. They are in the shards or, if the plan's requests
// are made from buffers, in those: shards are then gathered from the buffers and compared there.
class PlanPatterns {
 public:
  // The plan and the buffers' requests, if not null, must outlive it.
  explicit PlanPatterns(const Plan& plan, const StoredRequests* stored = nullptr);

  // Fills the sources of all tensors.
  void fill(PreparedPlan& prepared);
  // Compares a finished destination shard; none if all elements agree.
  std::optional<PatternMismatch> check(TensorId tensor, Rank rank,
                                       std::span<const std::byte> bytes);
  // Checks the padding between shards, after all of them were checked. Throws CheckFailure.
  void check_padding() const;
  bool has_buffers() const { return images_ != nullptr; }

 private:
  const Plan& plan_;
  IndexVector<TensorId, Pattern> patterns_;
  std::unique_ptr<StoredImages> images_;
};

using TakeShard = std::function<void(TensorId tensor, Rank rank, std::span<const std::byte> bytes)>;
// PreparedPlan::take for all tensors, one after the other.
void take_all(PreparedPlan& prepared, const Plan& plan, const TakeShard& take);

// The memory that moving a plan's data takes, in bytes, including the buffers that shards are
// gathered from and scattered to.
std::int64_t data_bytes(const Plan& plan, const StoredRequests* stored);

// Before anything is planned: throws InputError if the tensors cannot be reduced, and their
// destinations alone take more than the memory limit, so that move_and_check would refuse any plan.
void require_movable(std::span<const Request> requests, std::int64_t memory_limit_bytes);

// Moves the bytes of `plan` or, if its store_bytes exceed the budget, those of a plan for tensors
// that are shrunk until they fit or cannot shrink further. Without `replan` (a plan from elsewhere)
// it always uses `plan`. Throws CheckFailure with rank, global index, expected and found bits if an
// element is wrong, and InputError, before any shard is allocated, if the run needs more than
// `memory_limit_bytes`. `stored` is null unless the plan's requests are made from buffers.
DataReport move_and_check(std::shared_ptr<const Plan> plan, const MakePlan& replan,
                          std::int64_t budget_bytes, std::int64_t memory_limit_bytes,
                          const StoredRequests* stored = nullptr);

inline constexpr std::int64_t kDefaultDataBudgetBytes = std::int64_t{2} << 30;

// The same for a plan of the studies' planner, within this machine's memory. Plans for shrunk
// tensors do not enter the studies' cache.
DataReport moved(const Studies& studies, const std::shared_ptr<const Plan>& plan,
                 std::int64_t budget_bytes, const StoredRequests* stored = nullptr);

}  // namespace reshard::sim
