// SPDX-License-Identifier: BSD-3-Clause
// Text forms of shapes, boxes, meshes, rank lists and layouts, out and in. (Placements have words
// of their own: placement.cpp.)
#include <algorithm>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "core/layout/mesh.h"

namespace reshard {

namespace {

std::int32_t axis_size(Cursor& cursor) {
  return static_cast<std::int32_t>(cursor.integer("an axis size", 1, kMaxRanks));
}

// One level of "[[0,1],[2,3]]"; fills shape[depth...] on the first visit and demands the same
// extents afterwards.
void read_nested(Cursor& cursor, std::size_t depth, std::vector<std::int32_t>& shape,
                 std::vector<Rank>& ranks) {
  if (depth >= kMaxAxes) cursor.fail("at most 5 levels of brackets");
  cursor.expect("[");
  bool first_visit = shape.size() <= depth;
  if (first_visit) shape.push_back(0);
  std::int32_t count = 0;
  do {
    cursor.skip_spaces();
    if (cursor.peek() == '[') {
      if (shape.size() == depth + 1 && !(first_visit && count == 0)) cursor.fail("a rank");
      read_nested(cursor, depth + 1, shape, ranks);
    } else {
      if (shape.size() != depth + 1) cursor.fail("'['");
      ranks.push_back(Rank{static_cast<std::int32_t>(cursor.integer("a rank", 0, kMaxRanks - 1))});
      if (static_cast<std::int64_t>(ranks.size()) > kMaxRanks) cursor.fail("at most 2^20 ranks");
    }
    ++count;
    cursor.skip_spaces();
  } while (cursor.accept(","));
  cursor.expect("]");
  if (first_visit) shape[depth] = count;
  if (shape[depth] != count)
    throw InputError(
        fmt::format("mesh: expected rows of equal length, found {} and {}", shape[depth], count));
}

Mesh with_ranks(std::vector<std::int32_t> shape, std::vector<std::string> names,
                std::string_view ranks, std::string_view field) {
  if (ranks.empty()) return Mesh::row_major(std::move(shape), Rank{0}, std::move(names));
  return Mesh(std::move(shape), parse_ranks(ranks, field), std::move(names));
}

// "'dp'", with either kind of quotes.
std::string quoted_word(Cursor& cursor) {
  std::string_view quote = cursor.peek() == '"' ? "\"" : "'";
  cursor.expect(quote);
  std::string word(cursor.word());
  cursor.expect(quote);
  return word;
}

// "(a, b)", with or without a comma at the end.
template <class Read>
void read_tuple(Cursor& cursor, Read&& read) {
  cursor.expect("(");
  for (cursor.skip_spaces(); cursor.peek() != ')'; cursor.skip_spaces()) {
    read();
    cursor.skip_spaces();
    if (!cursor.accept(",")) break;
  }
  cursor.expect(")");
}

// As PyTorch prints a mesh, behind "DeviceMesh(": ranks in brackets or sizes in a tuple, axis names
// with either; what else it says (device, stride) changes nothing here.
Mesh read_device_mesh(Cursor& cursor) {
  std::vector<std::int32_t> shape;
  std::vector<std::string> names;
  std::vector<Rank> ranks;
  auto size = [&] {
    if (std::string_view name = cursor.word(); !name.empty()) {
      names.emplace_back(name);
      cursor.expect("=");
    }
    if (shape.size() == kMaxAxes) cursor.fail("at most 5 axes");
    shape.push_back(axis_size(cursor));
  };
  do {
    cursor.skip_spaces();
    if (!cursor.accept("mesh=")) cursor.accept("device_type=");
    if (cursor.peek() == '(' && shape.empty()) {
      read_tuple(cursor, size);
    } else if (cursor.peek() == '[' && shape.empty()) {
      read_nested(cursor, 0, shape, ranks);
    } else if (cursor.accept("mesh_dim_names=")) {
      read_tuple(cursor, [&] { names.push_back(quoted_word(cursor)); });
    } else if (cursor.accept("stride=")) {
      read_tuple(cursor, [&] { cursor.integer("a stride", 0, kMaxRanks); });
    } else if (cursor.peek() == '\'' || cursor.peek() == '"') {
      quoted_word(cursor);
    } else {
      cursor.fail(
          "a mesh as PyTorch prints it, such as "
          "DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))");
    }
    cursor.skip_spaces();
  } while (cursor.accept(","));
  cursor.expect(")");
  cursor.skip_spaces();
  cursor.expect_end();
  if (ranks.empty()) return Mesh::row_major(std::move(shape), Rank{0}, std::move(names));
  return Mesh(std::move(shape), std::move(ranks), std::move(names));
}

// As JAX writes a sharding, per dim the mesh axes that cut it: PartitionSpec('dp', None),
// PartitionSpec(('dp', 'tp')), the first the outermost.
PlacementList read_partition_spec(Cursor& cursor, const Mesh& mesh, int tensor_dims) {
  PlacementList out;
  out.placements.assign(to_index(mesh.axes()), Placement::replicate());
  out.order.assign(to_index(mesh.axes()), -1);
  auto cut = [&](int dim, int position) {
    std::string name = quoted_word(cursor);
    auto axis = std::find(mesh.names().begin(), mesh.names().end(), name) - mesh.names().begin();
    if (axis == mesh.axes() || mesh.names().empty())
      cursor.fail(fmt::format("a name of a mesh axis before this, not {}", quoted(name)));
    if (out.order[to_index(axis)] >= 0) cursor.fail("each mesh axis once before this");
    out.placements[to_index(axis)] = Placement::shard(dim);
    out.order[to_index(axis)] = position;
  };
  int dim = 0;
  for (cursor.skip_spaces(); cursor.peek() != ')'; cursor.skip_spaces(), ++dim) {
    if (dim == tensor_dims) cursor.fail(fmt::format("at most {} dims before this", tensor_dims));
    int position = 0;
    if (cursor.peek() == '(')
      read_tuple(cursor, [&] { cut(dim, position++); });
    else if (!cursor.accept("None"))
      cut(dim, position);
    cursor.skip_spaces();
    if (!cursor.accept(",")) break;
  }
  cursor.expect(")");
  cursor.skip_spaces();
  cursor.expect_end();
  return out;
}

}  // namespace

std::string text(const DimVector& values) {
  std::string out;
  for (int d = 0; d < values.size(); ++d) out += fmt::format("{}{}", d == 0 ? "" : ",", values[d]);
  return out;
}

DimVector index_at(std::int64_t index, const Shape& shape) {
  DimVector at(shape.size());
  for (int d = shape.size() - 1; d >= 0; --d) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

std::string text(const Box& box) {
  std::string out = "[";
  for (int d = 0; d < box.dims(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return out + "]";
}

Mesh parse_mesh(std::string_view text, std::string_view ranks, std::string_view field) {
  Cursor cursor(text, field);
  std::vector<std::int32_t> shape;
  std::vector<std::string> names;
  if (cursor.accept("DeviceMesh(")) {
    Mesh mesh = read_device_mesh(cursor);
    return ranks.empty() ? mesh : Mesh(mesh.shape(), parse_ranks(ranks, field), mesh.names());
  }
  if (cursor.peek() == '[') {
    std::vector<Rank> listed;
    read_nested(cursor, 0, shape, listed);
    cursor.expect_end();
    if (!ranks.empty())
      throw InputError(
          fmt::format("{}: expected ranks either in brackets or as a list, found both", field));
    return Mesh(std::move(shape), std::move(listed));
  }
  if (cursor.peek() >= '0' && cursor.peek() <= '9') {
    do shape.push_back(axis_size(cursor));
    while (shape.size() <= kMaxAxes && (cursor.accept("x") || cursor.accept("*")));
  } else {
    do {
      cursor.skip_spaces();
      std::string name(cursor.word());
      if (name.empty()) cursor.fail("a mesh such as 4x4, dp=4,tp=4 or [[0,1],[2,3]]");
      names.push_back(std::move(name));
      cursor.expect("=");
      shape.push_back(axis_size(cursor));
    } while (shape.size() <= kMaxAxes && cursor.accept(","));
  }
  cursor.expect_end();
  return with_ranks(std::move(shape), std::move(names), ranks, field);
}

std::string shape_text(const Mesh& mesh) {
  std::string out;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    if (mesh.names().empty())
      out += fmt::format("{}{}", axis == 0 ? "" : "x", mesh.axis_size(axis));
    else
      out += fmt::format("{}{}={}", axis == 0 ? "" : ",", mesh.names()[axis], mesh.axis_size(axis));
  }
  return out;
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && to_int(ranks[j + 1]) == to_int(ranks[j]) + 1) ++j;
    out += fmt::format("{}{}", i == 0 ? "" : ",", to_int(ranks[i]));
    if (j > i) out += fmt::format("-{}", to_int(ranks[j]));
    i = j + 1;
  }
  return out;
}

std::vector<Rank> parse_ranks(std::string_view text, std::string_view field) {
  Cursor cursor(text, field);
  std::vector<Rank> ranks;
  do {
    cursor.skip_spaces();
    std::int64_t first = cursor.integer("a rank", 0, kMaxRanks - 1), last = first;
    if (cursor.accept("-")) last = cursor.integer("a last rank", first, kMaxRanks - 1);
    if (static_cast<std::int64_t>(ranks.size()) + (last - first + 1) > kMaxRanks)
      cursor.fail("at most 2^20 ranks");
    for (std::int64_t rank = first; rank <= last; ++rank)
      ranks.push_back(Rank{static_cast<std::int32_t>(rank)});
    cursor.skip_spaces();
  } while (cursor.accept(","));
  cursor.expect_end();
  return ranks;
}

Layout parse_layout(std::string_view shape_text, std::string_view dtype, MeshRef mesh,
                    std::string_view placements, std::string_view field) {
  Shape shape = parse_shape(shape_text);
  Cursor cursor(placements, field);
  PlacementList list = cursor.accept("PartitionSpec(")
                           ? read_partition_spec(cursor, *mesh, shape.size())
                           : parse_placements(placements, mesh->axes(), shape.size(), field);
  return Layout(shape, parse_dtype(dtype), std::move(mesh), std::move(list.placements), list.order);
}

}  // namespace reshard
