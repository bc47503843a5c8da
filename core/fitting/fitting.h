// SPDX-License-Identifier: BSD-3-Clause
// Fits plans into the memory of ranks. If a plan needs more than a limit, its steps first run one
// after another, so that temporaries of different steps are not held together; then large boxes are
// split into contiguous ones, so that fewer are packed (packed_messages.h); then its exchanges run
// in waves (waves.h), about as few as fit: every wave costs a launch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/fitting/waves.h"
#include "core/plan/plan.h"

namespace reshard {

// What a rank may use, all of it counted as in held_memory.h. Bytes; without a value, no limit.
struct MemoryLimits {
  std::optional<std::int64_t> limit_bytes = {};  // in total
  std::optional<std::int64_t> extra_bytes = {};  // beyond source and destination of all tensors
  bool free_sources = false;  // the plan may rely on executors that free them (Plan::frees_sources)
  bool any() const { return limit_bytes || extra_bytes; }
  friend bool operator==(const MemoryLimits&, const MemoryLimits&) = default;
};

// What a plan needs.
struct MemoryNeeds {
  std::int64_t bytes = 0;        // of the fullest rank
  std::int64_t extra_bytes = 0;  // beyond source and destination, of the rank with most; >= 0
};
MemoryNeeds memory_needs(const Plan& plan);

bool fits(const MemoryNeeds& needs, const MemoryLimits& limits);

// How many bytes the needs are above the limits; 0 if they fit.
std::int64_t excess_bytes(const MemoryNeeds& needs, const MemoryLimits& limits);

// Throws InputError if the needs do not fit; the message names `who` and the least limit that would
// be met.
void require_fit(std::string_view who, const MemoryNeeds& needs, const MemoryLimits& limits);

// Sets Plan::frees_sources, and cuts `plan` into about as few waves as fit, or, if it never fits,
// into as many as possible; `needs` then gives limits that it would fit.
struct Fitted {
  MemoryNeeds needs;
  bool changed = false;  // the steps, or their order
};
Fitted fit(Plan& plan, const MemoryLimits& limits, const NodeOf& node_of = {});

// The same, but leaves exchanges whole if waves cannot make the plan fit because its temporaries
// alone take too much: for planners that then make another plan.
Fitted fit_if_possible(Plan& plan, const MemoryLimits& limits, const NodeOf& node_of = {});

}  // namespace reshard
