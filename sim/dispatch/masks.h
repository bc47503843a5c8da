// SPDX-License-Identifier: BSD-3-Clause
// Look-ups in a tensor that is cut along the dim looked up in: each rank knows its own indices.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/mesh.h"
#include "core/ops/call.h"
#include "sim/operators/array.h"

namespace reshard::sim {

// Which indices of a look-up a rank has: those of its part of the dim that is cut.
struct Mask {
  std::int64_t lo = 0, hi = 0;
  std::vector<bool> others;  // by element of the index
};

// Null where nothing is masked.
const OpPlacement* mask_of(const OpPlacements& placements);
// Of a position in the mesh the part of the looked-up dim, where the index is masked.
Mask mask_at(const OpPlacements& index, const MeshRef& mesh, std::int32_t position);
// Indices into the rank's part; those of others point to its first, and are noted in the mask.
Array shifted(const Array& index, Mask& mask);
// What came of others' indices is theirs to say: the index's dims lead those of the output.
void clear_others(const Mask& mask, Array& output);

}  // namespace reshard::sim
