// SPDX-License-Identifier: BSD-3-Clause
// The meaning of each kind of step (core/plan/plan.h) on real bytes, for all ranks at once.
#pragma once

#include "core/schedule/forwarding.h"
#include "sim/store/memory.h"

namespace reshard::sim {

// Runs the next step of the forwarded plan. Every box is checked against its buffer. Returns the
// bytes that it wrote.
std::int64_t run_step(const Plan& plan, Forwarding& forwarding, StepId step, StoreMemory& memory);

}  // namespace reshard::sim
