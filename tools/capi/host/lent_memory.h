// SPDX-License-Identifier: BSD-3-Clause
// Checks of memory that callers lend for a run: a wrong pointer or size becomes a sentence before
// anything is moved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/executor.h"
#include "core/plan/plan.h"

namespace reshard::capi {

struct LentMemory {
  const char* name;  // as the header calls it
  const void* data;
  std::int64_t bytes;
  bool written;
  std::int32_t rank = -1;  // named where the memory of several is checked
};

// Present, and aligned to the elements.
void require_usable(const LentMemory& memory, std::int64_t element_bytes);

// A rank's shards of a tensor, exactly as large as the plan's and usable; appended to `all`.
void check_shards(const Plan& plan, Slot slot, TensorId tensor, const CallerShards& shards,
                  bool name_rank, std::vector<LentMemory>& all);

// Nothing that is written overlaps anything else. What is only read may: replicas may share.
void require_apart(const std::vector<LentMemory>& all);

}  // namespace reshard::capi
