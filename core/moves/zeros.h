// SPDX-License-Identifier: BSD-3-Clause
// The zeros that S -> P(sum) leaves, and those in the padding of shards.
#pragma once

#include "core/demand/demand.h"
#include "core/plan/plan.h"

namespace reshard {

// The parts of every rank's destinations that S->P(sum) leaves zero or that are padding, of all
// tensors. Throws InputError beyond kMaxMoves.
FillStep zeros_of(const Demand& demand);
// The reason that planners give for that step.
const char* zeros_text(const Demand& demand);

}  // namespace reshard
