// SPDX-License-Identifier: BSD-3-Clause
// Placements and stacks while a planner changes one axis after another. A Layout is built from them
// only where data moves.
#pragma once

#include <algorithm>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

struct PlacementState {
  IndexVector<int, Placement> placements;
  ShardStacks stacks;

  explicit PlacementState(const Layout& layout)
      : placements(layout.placements()), stacks(layout.stacks()) {}

  const Placement& of(int axis) const { return placements[axis]; }
  std::vector<int>& stack(int dim) { return stacks[dim]; }
  const std::vector<int>& stack(int dim) const { return stacks[dim]; }

  // Removes the axis from its stack, if it is in one, and adds it innermost to the stack of its new
  // dim, if it has one.
  void place(int axis, const Placement& to) {
    if (of(axis).is_shard_like()) {
      std::vector<int>& old = stack(of(axis).dim);
      old.erase(std::find(old.begin(), old.end(), axis));
    }
    if (to.is_shard_like()) stack(to.dim).push_back(axis);
    placements[axis] = to;
  }

  Layout layout_like(const Layout& model) const {
    return Layout(model.shape(), model.dtype(), model.mesh_ref(), placements, stacks);
  }
};

}  // namespace reshard
