// SPDX-License-Identifier: BSD-3-Clause
// Builds placements from a sharding that states which dim each mesh axis cuts, and at which
// position of the dim's order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

class AxisCuts {
 public:
  // All three must outlive this. `field` names the input in messages.
  AxisCuts(const Mesh& mesh, const Shape& shape, std::string_view field);

  int dims() const { return shape_.size(); }
  // Every axis can be named at most once. `position`: among the dim's axes, 0 is the outermost.
  void cut(int axis, int dim, int position);
  void keep_whole(int axis);  // names the axis; it cuts nothing
  void add_up(int axis);      // its ranks hold addends of a sum
  void require_dims(int dims) const;

  // Throws InputError if XLA would cut a dim into other tiles than nested placements do.
  PlacementList take();

 private:
  void name(int axis);
  void check_tiles(int dim) const;

  const Mesh& mesh_;
  const Shape& shape_;
  std::string_view field_;
  std::vector<bool> named_;  // by axis
  PlacementList out_;
};

}  // namespace reshard
