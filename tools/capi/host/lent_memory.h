// SPDX-License-Identifier: BSD-3-Clause
// Checks of memory that callers lend for a run: a wrong pointer or size becomes an error message
// before anything is moved.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/plan/executor.h"
#include "core/plan/plan.h"

namespace reshard::capi {

struct LentMemory {
  const char* name;  // as in the public header
  const void* data;
  std::int64_t bytes;
  bool written;
  std::int32_t rank = -1;               // named in errors if the memory of several ranks is checked
  std::optional<TensorId> tensor = {};  // the same for several tensors,
  std::string_view tensor_name = {};    // with its name if it has one
};

// Throws InputError unless the memory is present and aligned to the elements.
void require_usable(const LentMemory& memory, std::int64_t element_bytes);

// Checks a rank's shards of a tensor: usable, and of exactly the plan's size. Appends them to
// `all`.
void check_shards(const Plan& plan, Slot slot, TensorId tensor, const CallerShards& shards,
                  bool name_rank, std::vector<LentMemory>& all);

// Throws InputError if memory that is written overlaps any other. Memory that is only read may
// overlap, as replicas may share it.
void require_apart(const std::vector<LentMemory>& all);

}  // namespace reshard::capi
