// SPDX-License-Identifier: BSD-3-Clause
// How PyTorch's min-cost planner reads _StridedShard: as a Shard with a place in its dim's order.
//
// An axis that cuts a dim after axes of larger number holds what a strided cut would give it, with
// the product of those axes' sizes as split factor. Read backward, a split factor names the place:
// axes are walked from last to first, and each is put where the product of the sizes before it is
// its factor, 1 for Shard.
//
// The two say the same where every cut is even. Where one is not they may differ (f32[7] as
// [_S(0, 2), S(0)] on 3x2): PyTorch makes the shards by one and plans by the other.
#pragma once

#include <optional>

#include "core/layout/layout.h"
#include "core/layout/request.h"

namespace reshard {

// A request as the min-cost planner sees it: without _StridedShard.
struct OrderedRequest {
  Layout source, target;
  // Whether every rank holds what the request's own layouts give it.
  bool exact = true;
};

// None across meshes, and where a side's _StridedShards are no shard order, or have one of their
// own beside it, which PyTorch cannot say.
std::optional<OrderedRequest> as_shard_orders(const Request& request);

}  // namespace reshard
