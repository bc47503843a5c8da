// SPDX-License-Identifier: BSD-3-Clause
// Whether a view leaves every element on its rank.
#pragma once

#include "core/ops/view_map.h"
#include "core/ops/view_shards.h"

namespace reshard {

// The axes whose shards of the output are not what their shards of the input become; 0 where each
// rank's part of the output holds the elements of its part of the input, in their order. Never 0
// where one is elsewhere; may name an axis of shards that agree only by accident of short lengths.
AxisSet moved_axes(const ViewMap& map, const AxisShards& in, const AxisShards& out,
                   AxisSizes sizes);

}  // namespace reshard
