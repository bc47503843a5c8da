// SPDX-License-Identifier: BSD-3-Clause
// What a plan costs in bytes, from the plan alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

struct PlanBytes {
  // Received from other ranks, padding included, by the default expansion.
  std::vector<std::int64_t> received_per_step;  // summed over ranks
  std::vector<std::int64_t> received_per_slot;  // summed over steps
  std::int64_t received_max = 0, received_total = 0;
  // Source (kept to the end) + destination + live temporaries. A temporary lives from the first
  // step that writes it to the last that reads it, in listed order; the destination all the time.
  // Sharing of replicas is not deducted.
  std::vector<std::int64_t> peak_per_slot;
  std::int64_t peak_max = 0;
};

PlanBytes count_bytes(const Plan& plan);

// First write and last access of every buffer on every slot, as steps in listed order: index buffer
// * slots + slot; -1 where no step writes it (the source) or touches it. After its last access an
// executor may free a temporary.
struct Lives {
  std::vector<std::int32_t> begin, end;
};
Lives lives_of(const Plan& plan);

}  // namespace reshard
