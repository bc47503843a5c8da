// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/sharding_text/sharding_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/layout/sharding_text/axis_cuts.h"
#include "core/layout/sharding_text/device_tiles.h"

namespace reshard {
namespace {

using Names = IndexVector<int, std::string>;

// The text up to and including the bracket that closes its first one; all of it if none does. "<="
// is not a bracket.
std::string_view bracketed(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bool arrow = text[i] == '<' && text.substr(i + 1).starts_with('=');
    if (!arrow && std::string_view("([{<").find(text[i]) != std::string_view::npos) ++depth;
    if (std::string_view(")]}>").find(text[i]) != std::string_view::npos && --depth == 0)
      return text.substr(0, i + 1);
  }
  return text;
}

class ShardingReader {
 public:
  ShardingReader(Cursor& cursor, const Mesh& mesh, const Shape& shape)
      : cursor_(cursor), mesh_(mesh), names_(mesh.names()), cuts_(mesh, shape, cursor.field()) {}

  PlacementList partition_spec() {
    read_spec();
    end();
    return cuts_.take();
  }

  // "mesh=Mesh('dp': 2, 'tp': 2), spec=PartitionSpec('dp',), memory_kind=device)".
  PlacementList named_sharding() {
    bool read = false;
    do {
      cursor_.skip_spaces();
      if (cursor_.accept("mesh=") || starts_mesh()) {
        take_mesh();
      } else if (cursor_.accept("spec=") || starts_spec()) {
        if (!cursor_.accept("PartitionSpec(")) cursor_.expect("P(");
        read_spec();
        read = true;
      } else {
        skip_entry();
      }
      cursor_.skip_spaces();
    } while (cursor_.accept(","));
    if (!read) cursor_.fail("spec=PartitionSpec(...) in NamedSharding(...)");
    cursor_.expect(")");
    end();
    return cuts_.take();
  }

  // After "#sdy.sharding<": "@mesh, [{"dp"}, {}], replicated={"tp"}>".
  PlacementList shardy() {
    cursor_.skip_spaces();
    if (cursor_.accept("@"))
      cursor_.word();
    else
      take_mesh();
    comma();
    cursor_.expect("[");
    int dim = 0;
    for (cursor_.skip_spaces(); cursor_.peek() != ']'; cursor_.skip_spaces(), ++dim) {
      int position = 0;
      axes_in_braces([&](int axis) { cuts_.cut(axis, dim, position++); });
      if (cursor_.accept("p")) cursor_.integer("a priority", 0, kMaxRanks);
      cursor_.skip_spaces();
      if (!cursor_.accept(",")) {
        ++dim;
        break;
      }
    }
    cursor_.expect("]");
    cuts_.require_dims(dim);
    for (cursor_.skip_spaces(); cursor_.accept(","); cursor_.skip_spaces()) {
      cursor_.skip_spaces();
      if (cursor_.accept("replicated="))
        axes_in_braces([&](int axis) { cuts_.keep_whole(axis); });
      else if (cursor_.accept("unreduced="))
        axes_in_braces([&](int axis) { cuts_.add_up(axis); });
      else
        cursor_.fail("replicated={...} or unreduced={...}");
    }
    cursor_.expect(">");
    end();
    return cuts_.take();
  }

 private:
  void end() {
    cursor_.skip_spaces();
    cursor_.expect_end();
  }
  void comma() {
    cursor_.skip_spaces();
    cursor_.expect(",");
    cursor_.skip_spaces();
  }

  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    throw InputError(
        fmt::format("{}: expected {}, found {}", cursor_.field(), expected, quoted(found)));
  }

  int axis_of(const std::string& name) const {
    if (names_.empty()) refuse("a mesh with axis names, such as dp=2,tp=2", name);
    auto axis = std::find(names_.begin(), names_.end(), name) - names_.begin();
    if (axis == mesh_.axes()) refuse("an axis of the mesh " + shape_text(mesh_), name);
    return static_cast<int>(axis);
  }

  // ---- JAX

  bool starts_spec() const {
    return cursor_.rest().starts_with("PartitionSpec(") || cursor_.rest().starts_with("P(");
  }
  bool starts_mesh() const {
    for (std::string_view start : {"Mesh(", "AbstractMesh(", "{"})
      if (cursor_.rest().starts_with(start)) return true;
    return false;
  }

  // The mesh in the text must be the one that is given; if that has no axis names, it takes them
  // from the text.
  void take_mesh() {
    std::string_view words = cursor_.rest();
    std::size_t begin = words.find_first_of("({<");
    if (begin == std::string_view::npos) cursor_.fail("a mesh such as Mesh('dp': 2, 'tp': 2)");
    words = words.substr(0, begin + bracketed(words.substr(begin)).size());
    Mesh printed = parse_mesh(words, {}, cursor_.field());
    bool ranks = words.find("device_ids=") != std::string_view::npos;
    bool named = mesh_.names().empty() || mesh_.names() == printed.names();
    if (!named || printed.shape() != mesh_.shape() || (ranks && printed.ranks() != mesh_.ranks()))
      throw InputError(
          fmt::format("{}: expected the mesh {} of ranks {}, found {} of ranks {}", cursor_.field(),
                      shape_text(mesh_), ranks_text(mesh_.ranks()), shape_text(printed),
                      ranks ? ranks_text(printed.ranks()) : ranks_text(mesh_.ranks())));
    names_ = printed.names();
    cursor_.expect(words);
  }

  // Skips "memory_kind=device", "_manual_axes=frozenset({...})", the name of a mesh.
  void skip_entry() {
    int depth = 0;
    std::string_view rest = cursor_.rest();
    std::size_t i = 0;
    for (; i < rest.size(); ++i) {
      if (depth == 0 && (rest[i] == ',' || rest[i] == ')')) break;
      if (std::string_view("([{").find(rest[i]) != std::string_view::npos) ++depth;
      if (std::string_view(")]}").find(rest[i]) != std::string_view::npos) --depth;
    }
    if (i == 0) cursor_.fail("an entry of NamedSharding(...)");
    cursor_.expect(rest.substr(0, i));
  }

  // After "P(".
  void read_spec() {
    int dim = 0;
    auto cut = [&](int at, int position) {
      if (cursor_.peek() != '\'' && cursor_.peek() != '"')
        cursor_.fail("None or an axis such as 'dp'");
      cuts_.cut(axis_of(cursor_.quoted_word()), at, position);
    };
    for (cursor_.skip_spaces(); cursor_.peek() != ')'; cursor_.skip_spaces(), ++dim) {
      int position = 0;
      if (cursor_.accept("unreduced=")) {
        axes_in_braces([&](int axis) { cuts_.add_up(axis); });
      } else if (dim == cuts_.dims()) {
        cursor_.fail(fmt::format("at most {} dims before this", dim));
      } else if (cursor_.peek() == '(') {
        cursor_.tuple([&] { cut(dim, position++); });
      } else if (!cursor_.accept("None")) {
        cut(dim, position);
      }
      cursor_.skip_spaces();
      if (!cursor_.accept(",")) break;
    }
    cursor_.expect(")");
  }

  // {"dp", "tp"}, {'dp'}, {"dp", ?} or {"dp":(1)4}.
  template <class Take>
  void axes_in_braces(Take&& take) {
    cursor_.expect("{");
    for (cursor_.skip_spaces(); cursor_.peek() != '}'; cursor_.skip_spaces()) {
      if (!cursor_.accept("?")) {
        std::string name = cursor_.quoted_word();
        int axis = axis_of(name);
        if (cursor_.accept(":(")) read_part(name, axis);
        take(axis);
      }
      cursor_.skip_spaces();
      if (!cursor_.accept(",")) break;
    }
    cursor_.expect("}");
  }

  // A part of an axis, given by the size of what precedes it it and its own size.
  void read_part(const std::string& name, int axis) {
    std::int64_t before = cursor_.integer("the size of what precedes it", 1, kMaxRanks);
    cursor_.expect(")");
    std::int64_t size = cursor_.integer("the size of a part of an axis", 1, kMaxRanks);
    if (before == 1 && size == mesh_.axis_size(axis)) return;
    throw InputError(
        fmt::format("{}: expected whole axes of the mesh, found a part of {} of the axis {}={}; "
                    "use a mesh with this axis split into several",
                    cursor_.field(), size, name, mesh_.axis_size(axis)));
  }

  Cursor& cursor_;
  const Mesh& mesh_;
  Names names_;
  AxisCuts cuts_;
};

// "P(" also begins a Partial. "P()" alone can mean that no dim is cut, or a Partial.
bool accept_partition_spec(Cursor& cursor, const Mesh& mesh) {
  std::string_view rest = cursor.rest();
  if (cursor.accept("PartitionSpec(")) return true;
  bool empty = rest == "P()";
  if (empty && mesh.names().empty() && mesh.axes() == 1)
    throw InputError(
        fmt::format("{}: expected R (JAX's P(), which shards no dim) or P(sum) (PyTorch's "
                    "Partial()), found 'P()'",
                    cursor.field()));
  for (std::string_view start : {"P('", "P(\"", "P(None", "P((", "P(unreduced"})
    if (empty || rest.starts_with(start)) return cursor.accept("P(");
  return false;
}

// Strips what programs print around a sharding: sharding=, mhlo.sharding = "...", sdy.sharding = .
std::string_view inner(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  auto trim = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  };
  trim();
  for (std::string_view start : {"mhlo.sharding", "sdy.sharding", "sharding"}) {
    if (!text.starts_with(start)) continue;
    std::string_view after = text.substr(start.size());
    after.remove_prefix(std::min(after.find_first_not_of(kBlanks), after.size()));
    if (!after.starts_with('=')) continue;
    text = after.substr(1);
    trim();
    if (text.size() > 1 && text.front() == '"' && text.back() == '"')
      text = text.substr(1, text.size() - 2);
    trim();
  }
  return text;
}

}  // namespace

std::optional<PlacementList> parse_sharding(std::string_view text, const Mesh& mesh,
                                            const Shape& shape, std::string_view field) {
  Cursor cursor(inner(text), field);
  ShardingReader reader(cursor, mesh, shape);
  if (cursor.peek() == '{') return read_device_tiles(cursor, mesh, shape);
  if (cursor.accept("GSPMDSharding(")) {
    std::string_view tiles = bracketed(cursor.rest());
    Cursor within(tiles, field);
    return read_device_tiles(within, mesh, shape);
  }
  if (cursor.rest().starts_with("SingleDeviceSharding("))
    throw InputError(
        fmt::format("{}: expected a sharding over the mesh, found a single device", field));
  if (cursor.accept("#sdy.sharding<")) return reader.shardy();
  if (cursor.accept("NamedSharding(")) return reader.named_sharding();
  if (accept_partition_spec(cursor, mesh)) return reader.partition_spec();
  return std::nullopt;
}

}  // namespace reshard
