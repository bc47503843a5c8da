// SPDX-License-Identifier: BSD-3-Clause
// What a view operator makes of placements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/view_map.h"
#include "core/ops/view_shards.h"

namespace reshard {

struct ViewResult {
  OpPlacements wanted, output;
  bool of_view = false;    // a view made the output's _StridedShard
  std::string refusal;     // empty: none. Else wanted and output are, too
  bool corrected = false;  // PyTorch fails inside here or takes elements for others
};

// `sizes`: of the mesh's axes. Partials pass. What PyTorch decides, save where it would be wrong or
// fails inside: there a strict operator refuses, another one replicates what cannot follow.
ViewResult propagate(const ViewMap& map, const TensorSpec& input, AxisSizes sizes);

AxisShard shard_of(const OpPlacement& placement);
// `before` with these shards for its own, replicated where there is none.
OpPlacements placements_of(const OpPlacements& before, const AxisShards& shards);

// The shape of a rank's part of the output, by its position in the mesh.
Shape local_sizes(const ViewMap& map, const OpPlacements& output, MeshRef mesh,
                  std::int32_t position);

}  // namespace reshard
