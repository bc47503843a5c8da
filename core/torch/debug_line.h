// SPDX-License-Identifier: BSD-3-Clause
// A line in which PyTorch's DebugMode tells of one redistribution, to be pasted as it is:
//
//   redistribute_input [explicit] (t: f32[4, 32], trace: P(sum)->R)
//   redistribute_input(t$2: f32[1, 32], trace: S(0)R->RR)
//   redistribute_input [implicit] (0, R -> P(sum))
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/layout/layout.h"

namespace reshard {

struct DebugLine {
  // What it says of the tensor; none where it names an argument by its place.
  std::optional<Shape> shape;
  bool of_one_rank = false;  // "t:": the shape is that of a rank's shard; "dt:": the whole tensor's
  std::string dtype;
  // Placements as the line has them, of the first and the last of its states.
  std::string from, to;
};

// Both throw InputError naming `field`. Placements are not read.
DebugLine parse_debug_line(std::string_view line, std::string_view field);

// The tensor's shape, where the line has one. A rank's is taken for everybody's: every dim is as
// much longer as the axes that shard it by `line.from` are large.
Shape global_shape(const DebugLine& line, const Mesh& mesh, std::string_view field);

}  // namespace reshard
