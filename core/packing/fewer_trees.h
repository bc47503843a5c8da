// SPDX-License-Identifier: BSD-3-Clause
// Gives up trees that carry little, so that as many moves leave room for more chunks.
//
// Routing granule by granule leaves a commodity with many trees that differ in a hop, most with a
// granule or two. An optimal packing needs few: a basic solution of its linear program has no more
// trees than commodities and resource classes together.
#pragma once

#include <cstdint>

#include "core/packing/loads.h"
#include "core/packing/packing.h"

namespace reshard {

// Moves granules from the smallest trees to others of the same commodity, as long as no resource
// class is busy for longer than `limit_ps` or, if that is more, than it was. `loads` is empty, and
// carries the packing afterwards.
void give_up_trees(Packing& packing, const Commodities& commodities, const RankRoutes& routes,
                   Loads& loads, std::int64_t limit_ps);

}  // namespace reshard
