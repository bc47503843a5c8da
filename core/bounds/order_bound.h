// SPDX-License-Identifier: BSD-3-Clause
// Bounds that hold from a moment on, as that in which a rank begins its part of something; and from
// them the bound of a job in stages.
//
// Between the start and the end of its part, a rank must receive all that it must receive and send
// all that it must send. In a job in stages, a rank begins its part of a stage when its parts of
// the stages before are done. The stage itself is done no earlier than its own bound after the
// first of its ranks has begun. The *order bound* is the end of the longest such path.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/bounds/bounds.h"
#include "core/layout/stages.h"

namespace reshard {

// bytes / bytes_per_s rounded up, saturating at the greatest int64. `bytes` must be below 2^86.
std::int64_t least_transfer_ps(Int128 bytes, Int128 bytes_per_s);
// at + by, saturating.
std::int64_t later_ps(std::int64_t at, std::int64_t by);

// By rank of the sets, in their order: what its part takes at least, from a demand's in_bytes.
std::vector<std::int64_t> part_bounds_ps(const std::vector<Int128>& in_bytes, const CutSets& sets);

// 0 without stages.
std::int64_t order_bound_ps(std::span<const Request> requests, const Stages& stages,
                            const CutSets& sets);

// bound_of all requests at once, with the order bound.
Bound bound_of(std::span<const Request> requests, const Stages& stages, const Topology& topology,
               Switches use = Switches::Reduce);

}  // namespace reshard
