// SPDX-License-Identifier: BSD-3-Clause
// A request as a picture: the tensor before and after, side by side, and whose each part is.
//
// Both sides have a box per shard, true to size, with the ranks that hold it. Colour is data: what
// has one colour lay in one shard before, so that one sees where it goes; where it was whole on
// all ranks before, what has one colour is one shard after. Partial is hatched.
#pragma once

#include "core/layout/request.h"
#include "sim/picture/markup.h"

namespace reshard::sim {

void draw_sharding(Node parent, const Request& request);

}  // namespace reshard::sim
