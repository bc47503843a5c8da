// SPDX-License-Identifier: BSD-3-Clause
// How long the stages of a packing's trees take.
#pragma once

#include <cstdint>

#include "core/packing/packing.h"

namespace reshard {

// How much longer than its longest stage a pipeline of one chunk takes: all other stages, each as
// long as it keeps its busiest link busy. A hop's stage is the number of hops before it.
std::int64_t later_stages_ps(const Packing& packing, const Commodities& commodities,
                             const RankRoutes& routes, const Symmetry& symmetry);

}  // namespace reshard
