// SPDX-License-Identifier: BSD-3-Clause
#include "core/torch/debug_line.h"

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/limits.h"

namespace reshard {

namespace {

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// The position of the first `end` outside all brackets; npos if there is none.
std::size_t find_outside(std::string_view text, char end) {
  constexpr std::string_view kOpening = "([{", kClosing = ")]}";
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text[i] == end) return i;
    if (kOpening.find(text[i]) != std::string_view::npos) ++depth;
    if (kClosing.find(text[i]) != std::string_view::npos) --depth;
    if (depth < 0) break;
  }
  return std::string_view::npos;
}

// "t$2: f32[1, 32]{requires_grad=True}", "dt: f32[4]| S(0)", or an argument's position. Nothing
// after the shape is needed.
void read_argument(std::string_view text, std::string_view field, DebugLine& line) {
  Cursor cursor(trimmed(text), field);
  if (cursor.peek() >= '0' && cursor.peek() <= '9') {
    cursor.integer("the position of an argument", 0, kMaxPlanNumber);
    cursor.expect_end();
    return;
  }
  line.of_one_rank = !cursor.accept("dt");
  if (line.of_one_rank && !cursor.accept("ft") && !cursor.accept("t"))
    cursor.fail("a tensor such as t: f32[4, 32]");
  if (cursor.accept("$")) cursor.integer("the number of a tensor", 0, kMaxPlanNumber);
  cursor.expect(":");
  cursor.skip_spaces();
  line.dtype = std::string(cursor.word());
  std::size_t length = cursor.peek() == '[' ? cursor.rest().find(']') : std::string_view::npos;
  if (line.dtype.empty() || length == std::string_view::npos)
    cursor.fail("a dtype and a shape such as f32[4, 32]");
  line.shape = parse_shape(cursor.rest().substr(0, length + 1), field);
}

// "trace: S(0)R->RR". Intermediate states are skipped.
void read_states(std::string_view text, std::string_view field, DebugLine& line) {
  constexpr std::string_view kTrace = "trace:";
  std::string_view states = trimmed(text);
  if (states.starts_with(kTrace)) states.remove_prefix(kTrace.size());
  std::size_t first = states.find("->"), last = states.rfind("->");
  if (first == std::string_view::npos)
    throw InputError(std::string(field) + ": expected placements such as S(0)->R, found " +
                     quoted(states));
  line.from = std::string(trimmed(states.substr(0, first)));
  line.to = std::string(trimmed(states.substr(last + 2)));
}

}  // namespace

DebugLine parse_debug_line(std::string_view text, std::string_view field) {
  Cursor cursor(text, field);
  DebugLine line;
  // The line may have been commented out, and a comment may follow it.
  for (cursor.skip_spaces(); cursor.accept("#");) cursor.skip_spaces();
  if (!cursor.accept("redistribute_input"))
    cursor.fail("a line of PyTorch's DebugMode that begins with redistribute_input");
  cursor.skip_spaces();
  if (cursor.accept("[implicit]") || cursor.accept("[explicit]")) cursor.skip_spaces();
  cursor.expect("(");
  std::string_view call = cursor.rest().substr(0, find_outside(cursor.rest(), ')'));
  std::size_t comma = find_outside(call, ',');
  if (comma == std::string_view::npos) cursor.fail("a tensor and its placements, with a comma");
  read_argument(call.substr(0, comma), field, line);
  read_states(call.substr(comma + 1), field, line);
  cursor.expect(call);
  cursor.expect(")");
  cursor.skip_spaces();
  // The result of the call may follow.
  if (!cursor.accept("->") && !cursor.accept("#")) cursor.expect_end();
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
