// SPDX-License-Identifier: BSD-3-Clause
// The product of a rule's rows over the mesh's axes, and the choice among its candidates.
#pragma once

#include <span>
#include <vector>

#include "core/ops/decision.h"

namespace reshard {

// Whether the tensor can have these placements: every dim that is cut has at least one element per
// part. `sizes`: of the mesh's axes.
bool can_lie(const Shape& shape, const OpPlacements& placements,
             std::span<const std::int32_t> sizes);

// `inputs`: all that are present, with those that out= writes to last. `rows`: the outputs, then
// the other inputs.
Decision choose(const OpSite& site, const std::vector<const TensorSpec*>& inputs, const Rows& rows,
                std::span<const std::int32_t> sizes, const MoveCost& cost,
                const Choosing& choosing);

}  // namespace reshard
