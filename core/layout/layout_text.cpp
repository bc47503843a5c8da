// SPDX-License-Identifier: BSD-3-Clause
// Text forms of shapes, boxes and layouts, out and in. (Meshes and placements have words of their
// own: mesh_text.cpp, placement.cpp.)
#include <algorithm>

#include <fmt/format.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "core/layout/mesh.h"

namespace reshard {

namespace {

// As JAX writes a sharding, per dim the mesh axes that cut it: PartitionSpec('dp', None) or
// P(('dp', 'tp')), the first the outermost.
PlacementList read_partition_spec(Cursor& cursor, const Mesh& mesh, int tensor_dims,
                                  std::string_view field) {
  PlacementList out;
  out.placements.assign(to_index(mesh.axes()), Placement::replicate());
  out.order.assign(to_index(mesh.axes()), -1);
  auto cut = [&](int dim, int position) {
    if (cursor.peek() != '\'' && cursor.peek() != '"') cursor.fail("None or an axis such as 'dp'");
    std::string name = cursor.quoted_word();
    auto refuse = [&](std::string_view expected) {
      throw InputError(fmt::format("{}: expected {}, found {}", field, expected, quoted(name)));
    };
    if (mesh.names().empty()) refuse("a mesh with axis names, such as dp=2,tp=2");
    auto axis = std::find(mesh.names().begin(), mesh.names().end(), name) - mesh.names().begin();
    if (axis == mesh.axes()) refuse("an axis of the mesh " + shape_text(mesh));
    if (out.order[to_index(axis)] >= 0) refuse("every axis at most once");
    out.placements[to_index(axis)] = Placement::shard(dim);
    out.order[to_index(axis)] = position;
  };
  int dim = 0;
  for (cursor.skip_spaces(); cursor.peek() != ')'; cursor.skip_spaces(), ++dim) {
    if (dim == tensor_dims) cursor.fail(fmt::format("at most {} dims before this", tensor_dims));
    int position = 0;
    if (cursor.peek() == '(')
      cursor.tuple([&] { cut(dim, position++); });
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

namespace {

// "PartitionSpec(", or "P(" where no reduction can follow.
bool accept_partition_spec(Cursor& cursor) {
  for (std::string_view start : {"P('", "P(\"", "P(None", "P(("})
    if (cursor.rest().starts_with(start)) return cursor.accept("P(");
  return cursor.accept("PartitionSpec(");
}

}  // namespace

Layout parse_layout(std::string_view shape_text, std::string_view dtype, MeshRef mesh,
                    std::string_view placements, std::string_view field) {
  Shape shape = parse_shape(shape_text);
  Cursor cursor(placements, field);
  PlacementList list = accept_partition_spec(cursor)
                           ? read_partition_spec(cursor, *mesh, shape.size(), field)
                           : parse_placements(placements, mesh->axes(), shape.size(), field);
  return Layout(shape, parse_dtype(dtype), std::move(mesh), std::move(list.placements), list.order);
}

}  // namespace reshard
