// SPDX-License-Identifier: BSD-3-Clause
// Placements from what a sharding says of mesh axes: which dim each cuts, and at which place of the
// order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

class AxisCuts {
 public:
  // All three must outlive it. `field` names the input in messages.
  AxisCuts(const Mesh& mesh, const Shape& shape, std::string_view field);

  int dims() const { return shape_.size(); }
  // An axis is named at most once. `position`: of the dim's axes, 0 the outermost.
  void cut(int axis, int dim, int position);
  void keep_whole(int axis);  // named, and nothing is cut
  void add_up(int axis);      // its ranks hold addends of a sum
  void require_dims(int dims) const;

  // Throws InputError where a dim's length is cut into tiles by XLA otherwise than by placements
  // one within the other.
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
