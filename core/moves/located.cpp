// SPDX-License-Identifier: BSD-3-Clause
#include "core/moves/located.h"

#include <algorithm>

namespace reshard {

Located::Located(const Layout& layout) : layout_(&layout), dims_(std::max(1, layout.dims())) {
  if (layout.dims() == 0) return;
  const Mesh& mesh = layout.mesh();
  pieces_.reserve(to_index(mesh.size()) * to_index(dims_));
  MeshCoordinate coordinate{};
  for (std::int32_t position = 0; position < mesh.size(); ++position) {
    for (int d = 0; d < dims_; ++d) pieces_.push_back(layout.piece_of(d, coordinate));
    // Counting up is cheaper than dividing the position.
    for (int axis = mesh.axes(); axis-- > 0;) {
      if (++coordinate[to_index(axis)] < mesh.axis_size(axis)) break;
      coordinate[to_index(axis)] = 0;
    }
  }
}

bool same_cut(const Layout& a, const Layout& b, int dim) {
  if (a.dims() == 0) return true;
  if (a.stack(dim) != b.stack(dim)) return false;
  for (int axis : a.stack(dim))
    if (a.placement(axis) != b.placement(axis)) return false;
  return true;
}

}  // namespace reshard
