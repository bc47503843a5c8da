// SPDX-License-Identifier: BSD-3-Clause
// Reads and writes text forms of meshes and rank lists.
#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/box.h"
#include "core/layout/mesh.h"

namespace reshard {

namespace {

[[noreturn]] void refuse_more(const Cursor& cursor, std::string_view most) {
  throw InputError(fmt::format("{}: expected at most {}, found more", cursor.field(), most));
}

std::int32_t axis_size(Cursor& cursor) {
  return static_cast<std::int32_t>(cursor.integer("an axis size", 1, kMaxRanks));
}

// One level of "[[0,1],[2,3]]"; fills shape[depth...] on the first visit and requires the same
// extents afterwards.
void read_nested(Cursor& cursor, std::size_t depth, std::vector<std::int32_t>& shape,
                 std::vector<Rank>& ranks) {
  if (depth >= kMaxAxes) refuse_more(cursor, "5 levels of brackets");
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
      if (static_cast<std::int64_t>(ranks.size()) > kMaxRanks) refuse_more(cursor, "2^20 ranks");
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

void refuse_ranks_twice(std::string_view ranks, std::string_view field) {
  if (!ranks.empty())
    throw InputError(fmt::format("{}: expected ranks in brackets or as a list, found both", field));
}

// Replaces "mesh", which Mesh's own errors name, with the field.
InputError of_field(const InputError& error, std::string_view field) {
  constexpr std::string_view kOwn = "mesh: ";
  std::string_view what = error.what();
  if (!what.starts_with(kOwn)) return error;
  return InputError(std::string(what.substr(kOwn.size()))).in(field);
}

// A mesh as PyTorch or JAX prints it.
struct PrintedMesh {
  std::vector<std::int32_t> shape, listed_shape;
  std::vector<std::string> names;
  std::vector<std::int64_t> strides;
  std::vector<Rank> listed;  // ranks, if they are printed
};

// "(dp=2, tp=2)" or "(2, 2)".
void read_sizes(Cursor& cursor, PrintedMesh& mesh) {
  cursor.tuple([&] {
    if (std::string_view name = cursor.word(); !name.empty()) {
      mesh.names.emplace_back(name);
      cursor.expect("=");
    }
    if (mesh.shape.size() == kMaxAxes) refuse_more(cursor, "5 axes");
    mesh.shape.push_back(axis_size(cursor));
  });
}

// Accepts "NAME=" or, as older versions print it, "NAME: ".
bool accept_name(Cursor& cursor, std::string_view name) {
  std::string with_equals = std::string(name) + "=", with_colon = std::string(name) + ":";
  if (cursor.accept(with_equals)) return true;
  if (!cursor.accept(with_colon)) return false;
  cursor.skip_spaces();
  return true;
}

bool accept_array(Cursor& cursor) {
  for (std::string_view start : {"tensor(", "torch.tensor(", "array(", "np.array("})
    if (cursor.accept(start)) return true;
  return false;
}

// After "tensor(": "[[0, 1], [2, 3]], dtype=torch.int32)".
void read_array(Cursor& cursor, PrintedMesh& mesh) {
  cursor.skip_spaces();
  read_nested(cursor, 0, mesh.listed_shape, mesh.listed);
  for (cursor.skip_spaces(); cursor.accept(","); cursor.skip_spaces()) {
    cursor.skip_spaces();
    if (!cursor.accept("dtype=") && !cursor.accept("device=")) cursor.fail("dtype=");
    if (cursor.peek() == '\'')
      cursor.expect(cursor.rest().substr(0, cursor.rest().find('\'', 1) + 1));
    else
      cursor.word();
  }
  cursor.expect(")");
}

// A device such as cuda, without quotation marks.
bool accept_device(Cursor& cursor) {
  Cursor ahead = cursor;
  if (ahead.word().empty() || ahead.peek() == '=') return false;
  cursor.word();
  return true;
}

std::string axis_name(Cursor& cursor) {
  std::string name = cursor.quoted_word();
  if (name.empty()) cursor.fail("an axis's name");
  return name;
}

// One entry of "DeviceMesh(...)": sizes, ranks, axis names, strides; the device is skipped.
void read_entry(Cursor& cursor, PrintedMesh& mesh) {
  if (accept_name(cursor, "mesh_dim_names")) {
    if (cursor.accept("None")) return;
    cursor.tuple([&] { mesh.names.push_back(axis_name(cursor)); });
    return;
  }
  if (accept_name(cursor, "stride")) {
    cursor.tuple([&] { mesh.strides.push_back(cursor.integer("a stride", 0, kMaxRanks)); });
    return;
  }
  for (std::string_view name : {"mesh_shape", "mesh", "Mesh", "device_type", "device"})
    if (accept_name(cursor, name)) break;
  if (cursor.peek() == '(' && mesh.shape.empty()) {
    read_sizes(cursor, mesh);
  } else if (mesh.listed.empty() && accept_array(cursor)) {
    read_array(cursor, mesh);
  } else if (cursor.peek() == '[' && mesh.listed.empty()) {
    read_nested(cursor, 0, mesh.listed_shape, mesh.listed);
  } else if (cursor.peek() == '\'' || cursor.peek() == '"') {
    cursor.quoted_word();
  } else if (!accept_device(cursor)) {
    cursor.fail(
        "a mesh as PyTorch prints it, such as "
        "DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))");
  }
}

std::vector<Rank> ranks_by_stride(const PrintedMesh& mesh, std::string_view field) {
  std::vector<Rank> ranks;
  DimVector at(static_cast<int>(mesh.shape.size()));
  do {
    std::int64_t rank = 0;
    for (int axis = 0; axis < at.size(); ++axis) rank += at[axis] * mesh.strides[to_index(axis)];
    if (rank >= kMaxRanks)
      throw InputError(fmt::format("{}: expected ranks below 2^20, found {}", field, rank));
    ranks.push_back(Rank{static_cast<std::int32_t>(rank)});
  } while (next_index(at, [&](int axis) { return to_index(mesh.shape[to_index(axis)]); }));
  return ranks;
}

// ---- meshes as JAX and Shardy print them

// "'dp': 2, 'tp': 2" or "\"dp\"=2, \"tp\"=2", up to the closing bracket or an entry of another
// form.
void read_named_sizes(Cursor& cursor, PrintedMesh& mesh) {
  for (cursor.skip_spaces(); cursor.peek() == '\'' || cursor.peek() == '"'; cursor.skip_spaces()) {
    if (mesh.shape.size() == kMaxAxes) cursor.fail("at most 5 axes");
    mesh.names.push_back(axis_name(cursor));
    cursor.skip_spaces();
    if (!cursor.accept(":")) cursor.expect("=");
    cursor.skip_spaces();
    mesh.shape.push_back(axis_size(cursor));
    cursor.skip_spaces();
    if (!cursor.accept(",")) return;
  }
}

// "(Auto, Auto)", "{...}": types of axes, which do not affect the layout.
void skip_axis_types(Cursor& cursor) {
  bool tuple = cursor.accept("(");
  if (!tuple && !cursor.accept("{")) cursor.fail("axis_types=(...)");
  std::size_t end = cursor.rest().find(tuple ? ')' : '}');
  if (end == std::string_view::npos) cursor.fail("the end of axis_types");
  cursor.expect(cursor.rest().substr(0, end + 1));
}

// After "Mesh(": sizes by name, or "device_ids=array([[0, 1]]), axis_names=('dp', 'tp')".
void read_jax_entries(Cursor& cursor, PrintedMesh& mesh) {
  read_named_sizes(cursor, mesh);
  for (cursor.skip_spaces(); cursor.peek() != ')'; cursor.skip_spaces()) {
    if (cursor.accept("axis_types=")) {
      skip_axis_types(cursor);
    } else if (cursor.accept("axis_names=")) {
      cursor.tuple([&] { mesh.names.push_back(axis_name(cursor)); });
    } else {
      cursor.accept("device_ids=");
      if (!mesh.listed.empty() || !accept_array(cursor))
        cursor.fail("a mesh as JAX prints it, such as Mesh('dp': 2, 'tp': 2)");
      read_array(cursor, mesh);
    }
    cursor.skip_spaces();
    if (!cursor.accept(",")) break;
  }
  cursor.expect(")");
}

std::optional<PrintedMesh> read_mesh_of_jax(Cursor& cursor) {
  PrintedMesh mesh;
  if (cursor.accept("Mesh(") || cursor.accept("AbstractMesh(")) {
    read_jax_entries(cursor, mesh);
    return mesh;
  }
  if (cursor.accept("sdy.mesh @")) {
    cursor.word();
    cursor.skip_spaces();
    cursor.expect("=");
    cursor.skip_spaces();
    cursor.accept("mesh");
    if (cursor.peek() != '<') cursor.fail("<[\"dp\"=2]>");
  } else if (cursor.rest().starts_with("mesh<")) {
    cursor.accept("mesh");
  }
  std::string_view close = cursor.accept("<[") ? "]" : cursor.accept("{") ? "}" : "";
  if (close.empty()) return std::nullopt;
  read_named_sizes(cursor, mesh);
  cursor.expect(close);
  if (close == "}") return mesh;
  if (cursor.accept(",")) {
    cursor.skip_spaces();
    cursor.expect("device_ids=");
    read_nested(cursor, 0, mesh.listed_shape, mesh.listed);
    mesh.listed_shape = mesh.shape;
  }
  cursor.expect(">");
  return mesh;
}

// The mesh in a printed DTensor, "DTensor(local_tensor=.., device_mesh=.., ..)"; otherwise the
// whole text.
std::string_view mesh_in(std::string_view text) {
  constexpr std::string_view kField = "device_mesh=", kNext = ", placements=";
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::size_t begin = text.starts_with(kField) ? 0 : text.find(kField);
  bool whole = text.starts_with("DTensor(");
  if (begin == std::string_view::npos || (begin > 0 && !whole)) return text;
  text.remove_prefix(begin + kField.size());
  if (whole) text = text.substr(0, text.rfind(kNext));
  return text.substr(0, text.find_last_not_of(" \t\r\n,") + 1);
}

// If the text lists no ranks, `ranks` gives them; else the strides do, from rank 0; else they are
// 0..n-1.
Mesh made_of(PrintedMesh mesh, Cursor& cursor, std::string_view ranks, std::string_view field) {
  cursor.skip_spaces();
  cursor.expect_end();
  if (!mesh.listed.empty()) {
    refuse_ranks_twice(ranks, field);
    if (!mesh.shape.empty() && mesh.shape != mesh.listed_shape)
      throw InputError(std::string(field) + ": expected ranks in the shape of the sizes");
    return Mesh(std::move(mesh.listed_shape), std::move(mesh.listed), std::move(mesh.names));
  }
  if (mesh.strides.size() != mesh.shape.size() || !ranks.empty()) {
    if (!mesh.strides.empty() && mesh.strides.size() != mesh.shape.size())
      throw InputError(std::string(field) + ": expected a stride per axis");
    return with_ranks(std::move(mesh.shape), std::move(mesh.names), ranks, field);
  }
  Mesh::row_major(mesh.shape);  // throws for sizes that no mesh has
  std::vector<Rank> strided = ranks_by_stride(mesh, field);
  return Mesh(std::move(mesh.shape), std::move(strided), std::move(mesh.names));
}

// After "DeviceMesh(".
Mesh read_device_mesh(Cursor& cursor, std::string_view ranks, std::string_view field) {
  PrintedMesh mesh;
  do {
    cursor.skip_spaces();
    read_entry(cursor, mesh);
    cursor.skip_spaces();
  } while (cursor.accept(","));
  cursor.expect(")");
  return made_of(std::move(mesh), cursor, ranks, field);
}

Mesh read_mesh(Cursor& cursor, std::string_view ranks, std::string_view field) {
  std::vector<std::int32_t> shape;
  std::vector<std::string> names;
  for (std::string_view start : {"DeviceMesh(", "DeviceMesh:(", "init_device_mesh("})
    if (cursor.accept(start)) return read_device_mesh(cursor, ranks, field);
  if (std::optional<PrintedMesh> mesh = read_mesh_of_jax(cursor))
    return made_of(std::move(*mesh), cursor, ranks, field);
  if (cursor.peek() == '[') {
    std::vector<Rank> listed;
    read_nested(cursor, 0, shape, listed);
    cursor.expect_end();
    refuse_ranks_twice(ranks, field);
    return Mesh(std::move(shape), std::move(listed));
  }
  if (cursor.peek() >= '0' && cursor.peek() <= '9') {
    do {
      if (shape.size() == kMaxAxes) refuse_more(cursor, "5 axes");
      shape.push_back(axis_size(cursor));
    } while (cursor.accept("x") || cursor.accept("*"));
  } else {
    do {
      if (shape.size() == kMaxAxes) refuse_more(cursor, "5 axes");
      cursor.skip_spaces();
      std::string name(cursor.word());
      if (name.empty()) cursor.fail("a mesh such as 4x4, dp=4,tp=4 or [[0,1],[2,3]]");
      names.push_back(std::move(name));
      cursor.expect("=");
      shape.push_back(axis_size(cursor));
    } while (cursor.accept(","));
  }
  cursor.expect_end();
  return with_ranks(std::move(shape), std::move(names), ranks, field);
}

}  // namespace

Mesh parse_mesh(std::string_view text, std::string_view ranks, std::string_view field) {
  Cursor cursor(mesh_in(text), field);
  try {
    return read_mesh(cursor, ranks, field);
  } catch (const InputError& error) {
    throw of_field(error, field);
  }
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
      refuse_more(cursor, "2^20 ranks");
    for (std::int64_t rank = first; rank <= last; ++rank)
      ranks.push_back(Rank{static_cast<std::int32_t>(rank)});
    cursor.skip_spaces();
  } while (cursor.accept(","));
  cursor.expect_end();
  return ranks;
}

}  // namespace reshard
