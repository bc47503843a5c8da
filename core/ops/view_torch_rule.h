// SPDX-License-Identifier: BSD-3-Clause
// How PyTorch 2.15 carries shards through a view, as it is: it may be wrong.
#pragma once

#include <string>

#include "core/ops/view_map.h"
#include "core/ops/view_shards.h"

namespace reshard {

struct TorchViewShards {
  AxisShards wanted, out;
  std::string refusal;  // empty: none
  int lost_axis = -1;   // whose shard PyTorch finds no place for: it fails inside
};

TorchViewShards torch_view_shards(const ViewMap& map, const AxisShards& in, AxisSizes sizes);

}  // namespace reshard
