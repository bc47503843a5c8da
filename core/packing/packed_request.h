// SPDX-License-Identifier: BSD-3-Clause
// A request in the form that packings use.
#pragma once

#include <vector>

#include "core/moves/items.h"
#include "core/packing/commodity.h"
#include "core/packing/symmetry.h"
#include "core/topology/topology.h"

namespace reshard {

struct PackedRequest {
  // The crossing must outlive this.
  PackedRequest(const Crossing& crossing, const Topology& topology);

  // By place in the meshes, which is what `commodities`, `symmetry` and packings call a slot: the
  // rank there, and its slot in the plan.
  std::vector<Rank> ranks;
  std::vector<Slot> plan_slot;

  Items all;
  Commodities commodities;
  std::vector<Item> items;  // one per commodity
  Symmetry symmetry;
};

}  // namespace reshard
