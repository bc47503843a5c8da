// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes the text forms of placements.
#include "core/layout/layout.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/integers.h"
#include "core/base/units.h"

namespace reshard {
namespace {

constexpr std::string_view kExpected =
    "a placement such as R, S(0), _S(0,2), P(sum), Shard(0), Replicate() or Partial(avg)";

std::int8_t read_dim(Cursor& cursor, int tensor_dims) {
  cursor.skip_spaces();
  if (tensor_dims == 0) cursor.fail("no Shard, as the tensor has 0 dims");
  std::int64_t dim = cursor.integer("a tensor dim", -tensor_dims, tensor_dims - 1);
  cursor.skip_spaces();
  return static_cast<std::int8_t>(dim < 0 ? dim + tensor_dims : dim);
}

// Skips "name=" if it is there.
void skip_name(Cursor& cursor, std::initializer_list<std::string_view> names) {
  cursor.skip_spaces();
  if (std::none_of(names.begin(), names.end(),
                   [&](std::string_view name) { return cursor.accept(name); }))
    return;
  cursor.skip_spaces();
  cursor.expect("=");
  cursor.skip_spaces();
}

// After "S" / "Shard": "(0)", "(dim=0)" or a bare digit.
Placement read_shard(Cursor& cursor, int tensor_dims) {
  if (!cursor.accept("(")) return Placement::shard(read_dim(cursor, tensor_dims));
  skip_name(cursor, {"dim"});
  Placement out = Placement::shard(read_dim(cursor, tensor_dims));
  cursor.expect(")");
  return out;
}

Placement read_strided(Cursor& cursor, int tensor_dims) {
  cursor.expect("(");
  skip_name(cursor, {"dim"});
  std::int8_t dim = read_dim(cursor, tensor_dims);
  cursor.expect(",");
  skip_name(cursor, {"sf", "split_factor"});
  std::int64_t factor = cursor.integer("a split factor", 1, kMaxRanks);
  cursor.skip_spaces();
  cursor.expect(")");
  return Placement::strided_shard(dim, factor);
}

Placement read_partial(Cursor& cursor) {
  if (!cursor.accept("(")) return Placement::partial();
  cursor.skip_spaces();
  if (cursor.accept(")")) return Placement::partial();
  skip_name(cursor, {"reduce_op"});
  bool quote = cursor.accept("'") || cursor.accept("\"");
  std::string_view word = cursor.word();
  if (word.empty()) cursor.fail("a reduction such as sum or avg");
  Placement out = Placement::partial(parse_reduce_op(word, cursor.field()));
  if (quote && !cursor.accept("'")) cursor.expect("\"");
  cursor.skip_spaces();
  cursor.expect(")");
  return out;
}

// After "_MaskPartial" or "MaskP": rows that a rank does not hold are filled with zeros, so they
// can be summed.
Placement read_mask(Cursor& cursor) {
  std::string_view rest = cursor.rest();
  int depth = 0;
  std::size_t end = 0;
  for (; end < rest.size(); ++end) {
    if (rest[end] == '(') ++depth;
    if (rest[end] == ')' && --depth == 0) break;
  }
  if (depth != 0 || !rest.starts_with('(') || end == rest.size()) cursor.fail("(...)");
  cursor.expect(rest.substr(0, end + 1));
  std::string_view op = rest.substr(1);
  if (op.starts_with("reduce_op=")) op.remove_prefix(10);
  op = op.substr(0, op.find_first_of(",)"));
  if (!op.empty() && op != "sum" && op != "None")
    throw InputError(fmt::format("{}: expected a mask with reduction sum, found {}", cursor.field(),
                                 quoted(op)));
  return Placement::partial();
}

// After "_NormPartial" or "_NormP": "(2)" or "(norm_type=2)". PyTorch sums the powers and then
// takes the root.
Placement read_norm(Cursor& cursor) {
  if (!cursor.accept("(")) return Placement::partial();
  skip_name(cursor, {"norm_type"});
  std::size_t end = cursor.rest().find_first_not_of("0123456789.e+-");
  if (end == 0 || end == std::string_view::npos) cursor.fail("a norm's order such as 2");
  cursor.expect(cursor.rest().substr(0, end));
  cursor.skip_spaces();
  cursor.expect(")");
  return Placement::partial();
}

Placement read_placement(Cursor& cursor, int tensor_dims) {
  // Longer words first: "S" is a prefix of "Shard", "P" of "Partial".
  if (cursor.accept("_StridedShard") || cursor.accept("_S"))
    return read_strided(cursor, tensor_dims);
  if (cursor.accept("_MaskPartial") || cursor.accept("MaskP")) return read_mask(cursor);
  if (cursor.accept("_NormPartial") || cursor.accept("_NormP")) return read_norm(cursor);
  if (cursor.accept("Shard") || cursor.accept("S")) return read_shard(cursor, tensor_dims);
  if (cursor.accept("Partial") || cursor.accept("P")) return read_partial(cursor);
  if (cursor.accept("Replicate") || cursor.accept("R")) {
    if (cursor.accept("(")) cursor.expect(")");
    return Placement::replicate();
  }
  cursor.fail(kExpected);
}

int read_order(Cursor& cursor, const Placement& placement) {
  if (cursor.peek() != '[') return -1;
  if (!placement.is_shard_like()) cursor.fail("a shard order index only after a Shard");
  cursor.expect("[");
  auto position =
      static_cast<int>(cursor.integer("a position in the shard order", 0, kMaxAxes - 1));
  cursor.expect("]");
  return position;
}

}  // namespace

PlacementList parse_placements(std::string_view text, int axes, int tensor_dims,
                               std::string_view field) {
  Cursor cursor(text, field);
  cursor.skip_spaces();
  std::string_view closing = cursor.accept("[") ? "]" : cursor.accept("(") ? ")" : "";
  PlacementList out;
  for (;;) {
    cursor.skip_spaces();
    if (cursor.at_end() || (!closing.empty() && cursor.rest().substr(0, 1) == closing)) break;
    if (static_cast<int>(out.placements.size()) == axes)
      cursor.fail(counted(axes, "placement") + ", one per mesh axis, and no more");
    out.placements.push_back(read_placement(cursor, tensor_dims));
    out.order.push_back(read_order(cursor, out.placements.back()));
    cursor.skip_spaces();
    if (cursor.accept(",") && (cursor.skip_spaces(), cursor.at_end())) cursor.fail(kExpected);
  }
  if (!closing.empty()) cursor.expect(closing);
  cursor.skip_spaces();
  cursor.expect_end();
  if (static_cast<int>(out.placements.size()) != axes)
    throw InputError(fmt::format("{}: expected {}, one per mesh axis, found {} in {}", field,
                                 counted(axes, "placement"), out.placements.size(), quoted(text)));
  return out;
}

std::string text(const Placement& placement) {
  constexpr std::array<const char*, 4> kForms{"R", "S({0})", "_S({0}, {1})", "P({2})"};
  return fmt::format(fmt::runtime(kForms[to_index(placement.kind)]), placement.dim,
                     placement.split_factor, text(placement.op));
}

std::string text(const std::vector<Placement>& placements, const ShardStacks& stacks) {
  IndexVector<int, int> position(placements.size(), -1);
  for (const std::vector<int>& stack : stacks)
    if (!std::is_sorted(stack.begin(), stack.end()))
      for (std::size_t i = 0; i < stack.size(); ++i) position[stack[i]] = static_cast<int>(i);
  std::string out;
  for (std::size_t axis = 0; axis < placements.size(); ++axis) {
    out += text(placements[axis]);
    if (position[axis] >= 0) out += fmt::format("[{}]", position[axis]);
  }
  return out;
}

}  // namespace reshard
