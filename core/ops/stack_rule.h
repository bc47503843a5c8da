// SPDX-License-Identifier: BSD-3-Clause
// stack: all tensors lie as what they have in common, axis by axis.
#pragma once

#include "core/ops/decision.h"

namespace reshard {

Decision decide_stack(const OpCall& call, std::span<const std::int32_t> sizes,
                      const MoveCost& cost);

}  // namespace reshard
