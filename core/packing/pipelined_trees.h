// SPDX-License-Identifier: BSD-3-Clause
// From packed trees to a plan's steps.
//
// Every item is cut along its longest dim, a slice for each tree, and every slice along the second
// longest into chunks that follow each other through the tree. What a rank passes on and does not
// need itself waits in a temporary; what it needs it passes on from where it belongs.
//
// Hops that start at holders over one kind of route are a stage, those that go on from there over
// another, and so on, hops to ranks that pass nothing on apart from the others: who only receives
// keeps nobody waiting. Folds and the hops towards their roots are staged by height above the first
// senders.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/packing/packed_request.h"
#include "core/packing/packing.h"

namespace reshard {

struct Chunking {
  std::vector<std::int32_t> weights{1};  // of the chunks, first first
  int window = 2;                        // chunks that set out at a time
  bool waves = false;                    // for machines that run one step after the other
};

// Adds the steps to crossing.plan, and says why each is there.
void emit_trees(Crossing& crossing, const PackedRequest& packed, const RankRoutes& routes,
                const Packing& packing, const Chunking& chunking,
                const std::function<void(StepId, std::string)>& say);

}  // namespace reshard
