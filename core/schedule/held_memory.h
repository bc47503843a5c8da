// SPDX-License-Identifier: BSD-3-Clause
// The most memory that a rank uses at any one time, however its steps overlap.
//
// On a rank, one use of memory is gone before another if every step of the first is ordered before
// every step that begins the second. Uses can all be held at once if none of them is gone before
// another. By Dilworth's theorem with weights, the most bytes that such a set holds is the total of
// all uses minus the most that they can take over, each from those gone before it. Where the steps
// of a rank are all ordered, that is the most at any step.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

// Source and destination of all tensors on a rank, in bytes.
std::int64_t tensor_bytes(const Plan& plan, Slot slot);

// In bytes, by slot. All of these throw InputError where there are too many steps to order
// (step_order.h).
//
// Temporaries, each from the first step that writes it to the last that reads it.
std::vector<std::int64_t> held_temporaries(const Plan& plan);

// Sources and destinations of all tensors as well. Sources are held to the end and destinations
// from the beginning, unless the plan frees sources (Plan::frees_sources): then a source is held up
// to the last step that reads it, and a destination from the first that writes it.
std::vector<std::int64_t> held_buffers(const Plan& plan);

// Packed messages (packed_messages.h) as well, for as long as their step runs.
std::vector<std::int64_t> held_memory(const Plan& plan);

}  // namespace reshard
