// SPDX-License-Identifier: BSD-3-Clause
// Consecutive steps that are one collective over several axes (PyTorch's
// _optimize_transform_infos). PyTorch merges them only where the user flattened the axes into a
// mesh; a plan here needs no such mesh, because its steps name their groups.
//
// Consecutive all-gathers, all-reduces or reduce-scatters with the same placements before and after
// are merged; sum and avg count as the same here. All-to-alls and local steps are not merged, and
// nothing is reordered. A reduce-scatter must take its axes in ascending order, and the local
// length of the dim must be divisible by the product of their sizes; an all-gather must take its
// axes in descending order, innermost first.
//
// PyTorch overlooks that nested cuts of an uneven dim differ from one flat cut, so its merged
// all-gather loses rows there (pytorch #194457). Here blocks are computed from what ranks hold, so
// merging is right in that case too.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/torch/cost_model.h"

namespace reshard {

// The number of steps in each collective or local step, in order; they sum to the number of steps.
// `source` is the layout before the first step and must have no _StridedShard.
std::vector<std::size_t> joined_steps(const Layout& source, std::span<const TorchStep> steps);

}  // namespace reshard
