// SPDX-License-Identifier: BSD-3-Clause
// A plan's bytes moved and compared: every source element filled by Pattern, every destination
// element checked against what the request defines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/base/digest.h"
#include "core/plan/plan.h"
#include "sim/store/shrink.h"

namespace reshard::sim {

// Source, destination and temporaries of all ranks; temporaries at each rank's peak, sharing of
// replicas not deducted.
std::int64_t store_bytes(const Plan& plan);

struct DataReport {
  bool checked = false;
  bool full_size = true;         // else the tensor was shrunk to fit the budget
  Shape shape;                   // of the tensor that was moved
  std::int64_t elements = 0;     // destination elements compared, all ranks together
  std::optional<Digest> digest;  // XXH3-128 over the destination shards, rank ascending; none where
                                 // they hold no element
  std::int64_t bytes_moved = 0;  // written by steps
};

// Plans and proves a request, by the planner that made the plan at full size: what is checked small
// must be the strategy that is used large.
using MakePlan = std::function<std::shared_ptr<const Plan>(const Request& request)>;

// Moves the bytes of `plan`, or, where store_bytes is above the budget, of a plan for a shrunk
// tensor, as small as it takes or as it gets. Throws CheckFailure naming rank, global index,
// expected and found bits where an element is wrong; InputError, before any shard is allocated,
// where what is to be moved needs more than `memory_limit_bytes`.
DataReport move_and_check(const Request& request, std::shared_ptr<const Plan> plan,
                          const MakePlan& replan, std::int64_t budget_bytes,
                          std::int64_t memory_limit_bytes);

}  // namespace reshard::sim
