// SPDX-License-Identifier: BSD-3-Clause
#include "core/torch/debug_line.h"

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"

namespace reshard {

namespace {

// "t$2: f32[1, 32]", or the argument's place.
void read_argument(Cursor& cursor, DebugLine& line) {
  if (cursor.peek() >= '0' && cursor.peek() <= '9') {
    cursor.integer("the place of an argument", 0, kMaxPlanNumber);
    return;
  }
  line.of_one_rank = !cursor.accept("dt");
  if (line.of_one_rank && !cursor.accept("t")) cursor.fail("a tensor such as t: f32[4, 32]");
  if (cursor.accept("$")) cursor.integer("the number of a tensor", 0, kMaxPlanNumber);
  cursor.expect(":");
  cursor.skip_spaces();
  line.dtype = std::string(cursor.word());
  if (cursor.peek() != '[') cursor.fail("a dtype and a shape such as f32[4, 32]");
  std::size_t length = cursor.rest().find(']');
  if (length == std::string_view::npos) cursor.fail("a shape such as [4, 32]");
  line.shape = parse_shape(cursor.rest().substr(0, length + 1), "the shape in a line of DebugMode");
  cursor.expect(cursor.rest().substr(0, length + 1));
}

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "S(0)R->RR", the states in between left out.
void read_states(Cursor& cursor, DebugLine& line) {
  std::string_view states = trimmed(cursor.rest());
  std::size_t first = states.find("->"), last = states.rfind("->");
  if (first == std::string_view::npos || states.back() != ')')
    cursor.fail("placements such as S(0)->R) to the end");
  states.remove_suffix(1);
  line.from = std::string(trimmed(states.substr(0, first)));
  line.to = std::string(trimmed(states.substr(last + 2)));
}

}  // namespace

DebugLine parse_debug_line(std::string_view text, std::string_view field) {
  Cursor cursor(text, field);
  DebugLine line;
  cursor.skip_spaces();
  if (!cursor.accept("redistribute_input"))
    cursor.fail("a line of PyTorch's DebugMode that begins with redistribute_input");
  cursor.skip_spaces();
  if (cursor.accept("[implicit]") || cursor.accept("[explicit]")) cursor.skip_spaces();
  cursor.expect("(");
  read_argument(cursor, line);
  cursor.expect(",");
  cursor.skip_spaces();
  if (cursor.accept("trace:")) cursor.skip_spaces();
  read_states(cursor, line);
  return line;
}

Shape global_shape(const DebugLine& line, const Mesh& mesh, std::string_view field) {
  Shape shape = *line.shape;
  if (!line.of_one_rank) return shape;
  PlacementList from = parse_placements(line.from, mesh.axes(), shape.size(), field);
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    const Placement& placement = from.placements[to_index(axis)];
    if (!placement.is_shard_like()) continue;
    std::optional<std::int64_t> extent =
        checked_product(shape[placement.dim], mesh.axis_size(axis));
    if (!extent) throw InputError(std::string(field) + ": expected a tensor of at most 2^62 bytes");
    shape[placement.dim] = *extent;
  }
  return shape;
}

}  // namespace reshard
