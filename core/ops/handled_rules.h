// SPDX-License-Identifier: BSD-3-Clause
// Operators that PyTorch does not choose rows for: handlers work on the shards as they lie and
// communicate themselves. argmax and argmin compare every rank's best; within loss_parallel the
// losses of logits that are cut along the classes are worked out on the cut.
#pragma once

#include "core/ops/decision.h"

namespace reshard {

bool is_handled(const OpCall& call);
// Throws InputError for layouts that the handler does not take.
Decision decide_handled(const OpCall& call, std::span<const std::int32_t> sizes,
                        const MoveCost& cost);

}  // namespace reshard
