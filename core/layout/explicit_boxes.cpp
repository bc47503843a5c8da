// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/explicit_boxes.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/layout/box_index.h"
#include "core/layout/box_text.h"

namespace reshard {
namespace {

constexpr std::string_view kWord = "boxes(";

void check_disjoint(const std::vector<Part>& parts, bool local) {
  std::vector<Box> boxes;
  for (const Part& part : parts) boxes.push_back(local ? part.local() : part.box);
  if (auto found = BoxIndex(std::move(boxes)).overlap())
    throw InputError(fmt::format("expected boxes that do not overlap{}, found {} and {}",
                                 local ? " in the shard" : "", text(parts[found->first].box),
                                 text(parts[found->second].box)));
}

// The elements of a shard; none if they are more than a tensor can have.
std::optional<std::int64_t> shard_elements(const Shape& shape) {
  std::optional<std::int64_t> out = 1;
  for (std::int64_t extent : shape)
    if (out) out = checked_product(*out, extent);
  return out;
}

// Appends what no part has of `region`. In all dims before `dim`, the parts contain the region.
void add_padding(const Box& region, int dim, const std::vector<Part>& parts,
                 std::vector<Box>& out) {
  if (parts.empty()) {
    out.push_back(region);
    return;
  }
  if (dim == region.dims()) return;
  for_each_slab(
      parts, dim, region.lo[dim], region.hi[dim], [](const Part& part) { return part.local(); },
      [&](std::int64_t lo, std::int64_t hi, const std::vector<Part>& inside) {
        Box slab = region;
        slab.lo[dim] = lo;
        slab.hi[dim] = hi;
        add_padding(slab, dim + 1, inside, out);
      });
}

BoxCell cell_from(const Shape& shape, std::vector<Part> parts) {
  BoxCell out{DimVector(shape.size(), 0), {}, {}};
  for (const Part& part : parts) {
    if (part.box.empty() || !contains(box_of(shape), part.box))
      throw InputError(
          fmt::format("expected boxes of the tensor [{}], found {}", text(shape), text(part.box)));
    for (int d = 0; d < shape.size(); ++d)
      out.local_shape[d] = std::max(out.local_shape[d], part.local().hi[d]);
  }
  check_disjoint(parts, false);
  check_disjoint(parts, true);
  std::optional<std::int64_t> room = shard_elements(out.local_shape);
  if (!room)
    throw InputError(fmt::format("expected a shard of at most 2^62 elements, found [{}]",
                                 text(out.local_shape)));
  std::int64_t elements = 0;  // at most `room`, as the boxes are disjoint
  for (const Part& part : parts) elements += part.box.volume();
  if (*room != elements) add_padding(box_of(out.local_shape), 0, parts, out.padding);
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.local_lo < b.local_lo; });
  out.parts = std::move(parts);
  return out;
}

// Where a box is if the text does not state it: after those before it along dim 0.
class UsualPlace {
 public:
  explicit UsualPlace(int dims) : at_(dims, 0) {}
  const DimVector& at() const { return at_; }
  void pass(const Box& box) { at_[0] += box.extent(0); }

 private:
  DimVector at_;
};

class BoxesReader {
 public:
  BoxesReader(Cursor& cursor, const Shape& shape, const Mesh& mesh)
      : cursor_(cursor), shape_(shape), mesh_(mesh), list_of_(to_index(mesh.size()), -1) {}

  void read() {
    cursor_.skip_spaces();
    cursor_.expect(kWord);
    cursor_.skip_spaces();
    if (!cursor_.accept(")")) {
      do entry();
      while (cursor_.accept(";"));
      cursor_.expect(")");
    }
    cursor_.skip_spaces();
    cursor_.expect_end();
  }
  ExplicitBoxes made() { return ExplicitBoxes(shape_, mesh_, std::move(lists_), list_of_); }

 private:
  void entry() {
    read_ranks();
    std::vector<Part>& parts = lists_.emplace_back();
    UsualPlace place(shape_.size());
    do {
      cursor_.skip_spaces();
      parts.push_back(part(place.at()));
      if (parts.back().box.extent(0) > kMaxBytes - place.at()[0])
        cursor_.fail("boxes of one rank that are at most the tensor");
      place.pass(parts.back().box);
      cursor_.skip_spaces();
    } while (cursor_.accept(","));
  }

  void read_ranks() {
    cursor_.skip_spaces();
    std::string_view rest = cursor_.rest();
    std::string_view list = rest.substr(0, rest.find(':'));
    cursor_.accept(list);
    for (Rank rank : parse_ranks(list, cursor_.field())) {
      auto position = mesh_.position_of(rank);
      if (!position || list_of_[to_index(*position)] >= 0)
        throw InputError(fmt::format("{}: expected each rank of the mesh at most once, found {}",
                                     cursor_.field(), to_int(rank)));
      list_of_[to_index(*position)] = static_cast<std::int32_t>(lists_.size());
    }
    cursor_.expect(":");
  }

  Part part(const DimVector& usual) {
    Part out{box(), usual};
    if (!cursor_.accept("@")) return out;
    for (int d = 0; d < shape_.size(); ++d) {
      if (d > 0) cursor_.expect(",");
      out.local_lo[d] = cursor_.integer("an index in the shard", 0, kMaxBytes / 2);
    }
    return out;
  }

  Box box() {
    cursor_.expect("[");
    Box out = read_box(cursor_, shape_);
    cursor_.expect("]");
    return out;
  }

  Cursor& cursor_;
  const Shape& shape_;
  const Mesh& mesh_;
  std::vector<std::vector<Part>> lists_;
  std::vector<std::int32_t> list_of_;  // by position
};

}  // namespace

ExplicitBoxes::ExplicitBoxes(const Shape& shape, const Mesh& mesh,
                             std::vector<std::vector<Part>> lists,
                             const std::vector<std::int32_t>& list_of) {
  if (shape.size() == 0)
    throw InputError("boxes: expected a tensor of at least 1 dim, found a scalar");
  RESHARD_CHECK(list_of.size() == to_index(mesh.size()), "a list for every rank of the mesh");
  for (std::vector<Part>& list : lists) std::sort(list.begin(), list.end());
  lists.emplace_back();  // number -1
  std::map<std::vector<Part>, std::int32_t> known;
  std::vector<std::int32_t> cell_of_list(lists.size(), -1);
  for (std::int32_t position = 0; position < mesh.size(); ++position) {
    std::int32_t number = list_of[to_index(position)];
    std::size_t list = number < 0 ? lists.size() - 1 : to_index(number);
    if (std::int32_t& cell = cell_of_list[list]; cell < 0) {
      auto next = static_cast<std::int32_t>(cells_.size());
      auto [at, is_new] = known.try_emplace(lists[list], next);
      cell = at->second;
      if (is_new) add_cell(shape, lists[list], mesh.rank_at(position));
    }
    cell_of_.push_back(cell_of_list[list]);
  }
}

void ExplicitBoxes::add_cell(const Shape& shape, const std::vector<Part>& parts, Rank rank) {
  try {
    cells_.push_back(cell_from(shape, parts));
  } catch (const InputError& error) {
    throw error.in(fmt::format("boxes of rank {}", to_int(rank)));
  }
}

std::string ExplicitBoxes::text(const Mesh& mesh) const {
  std::vector<std::vector<Rank>> ranks(cells_.size());
  for (std::int32_t position = 0; position < mesh.size(); ++position)
    ranks[to_index(cell_of(position))].push_back(mesh.rank_at(position));
  std::string out;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    if (cells_[cell].parts.empty()) continue;
    out += fmt::format("{}{}: ", out.empty() ? "" : "; ", ranks_text(ranks[cell]));
    UsualPlace place(cells_[cell].local_shape.size());
    for (const Part& part : cells_[cell].parts) {
      if (&part != &cells_[cell].parts.front()) out += ", ";
      out += reshard::text(part.box);
      if (part.local_lo != place.at()) out += fmt::format("@{}", reshard::text(part.local_lo));
      place.pass(part.box);
    }
  }
  return fmt::format("{}{})", kWord, out);
}

bool operator==(const ExplicitBoxes& a, const ExplicitBoxes& b) {
  return a.cell_of_ == b.cell_of_ &&
         std::equal(a.cells_.begin(), a.cells_.end(), b.cells_.begin(), b.cells_.end(),
                    [](const BoxCell& x, const BoxCell& y) { return x.parts == y.parts; });
}

bool is_boxes_text(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.starts_with(kWord);
}

ExplicitBoxes parse_boxes(std::string_view text, const Shape& shape, const Mesh& mesh,
                          std::string_view field) {
  Cursor cursor(text, field);
  BoxesReader reader(cursor, shape, mesh);
  reader.read();
  try {
    return reader.made();
  } catch (const InputError& error) {
    throw error.in(std::string(field));
  }
}

}  // namespace reshard
