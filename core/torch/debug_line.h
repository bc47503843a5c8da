// SPDX-License-Identifier: BSD-3-Clause
// A line in which PyTorch's DebugMode reports one redistribution, to be pasted unchanged:
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
  // The tensor's shape; none where the line names an argument by its position.
  std::optional<Shape> shape;
  bool of_one_rank = false;  // "t:": the shape of one rank's shard; "dt:": of the whole tensor
  std::string dtype;
  // Placements as written in the line: its first state and its last.
  std::string from, to;
};

// Both throw InputError naming `field`. parse_debug_line does not parse the placements.
DebugLine parse_debug_line(std::string_view line, std::string_view field);

// The tensor's shape, for a line that has one. A shard's shape is taken to be the same on every
// rank: each dim is multiplied by the sizes of the axes that shard it in `line.from`.
Shape global_shape(const DebugLine& line, const Mesh& mesh, std::string_view field);

}  // namespace reshard
