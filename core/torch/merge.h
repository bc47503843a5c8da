// SPDX-License-Identifier: BSD-3-Clause
// Consecutive steps that are one collective over several axes (PyTorch's
// _optimize_transform_infos). PyTorch does so where the user flattened the axes into a mesh of
// their own; a plan here needs no such mesh, as it names its groups.
//
// Steps are joined that gather, reduce, or reduce and scatter alike: all from and to the same
// placements, but that sum and avg go together. All-to-alls are not joined, local steps neither,
// and nothing is reordered. A reduce-scatter must take its axes in ascending order and find the
// dim, as long as it then is, divisible by all of their sizes; an all-gather must take them in
// descending order, innermost first.
//
// PyTorch forgets that nested cuts of an uneven dim are not those of one flat cut, and its joined
// all-gather loses rows there (pytorch #194457). Here the blocks are worked out from what ranks
// hold, so it is right to join these, too.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/torch/cost_model.h"

namespace reshard {

// How many of the steps each collective or local step takes, in order; their sum is the number of
// steps. `source`, which they start from, must have no _StridedShard.
std::vector<std::size_t> joined_steps(const Layout& source, std::span<const TorchStep> steps);

}  // namespace reshard
