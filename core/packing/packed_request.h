// SPDX-License-Identifier: BSD-3-Clause
// A request as packings see it.
#pragma once

#include <vector>

#include "core/moves/items.h"
#include "core/packing/commodity.h"
#include "core/packing/symmetry.h"
#include "core/topology/topology.h"

namespace reshard {

struct PackedRequest {
  // The crossing must outlive it.
  PackedRequest(const Crossing& crossing, const Topology& topology);

  // By place in the meshes, which is what `commodities`, `symmetry` and packings call a slot: the
  // rank, and the plan's slot.
  std::vector<Rank> ranks;
  std::vector<Slot> plan_slot;

  Items all;
  Commodities commodities;
  std::vector<Item> items;  // that the commodities are, one each
  Symmetry symmetry;
};

}  // namespace reshard
