// SPDX-License-Identifier: BSD-3-Clause
// Where every element is: the index sets, local shapes and global offsets that PyTorch itself
// computes.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/core/torch/expectations.h"
#include "tests/support/layout_facts.h"

namespace reshard {
namespace {

template <class Vector>
std::string comma_text(const Vector& values) {
  return fmt::format("{}", fmt::join(values.begin(), values.end(), ","));
}

// As index_sets.txt writes it: "0-1,3", or "@5" where the rank holds nothing.
std::string index_set_text(const Layout& layout, std::int32_t position) {
  std::string out;
  for (const Run& run : layout.runs(0, position)) {
    if (!out.empty()) out += ",";
    out += run.size == 1 ? fmt::format("{}", run.global_lo)
                         : fmt::format("{}-{}", run.global_lo, run.global_hi() - 1);
  }
  if (out.empty()) return fmt::format("@{}", comma_text(test::global_offset(layout, position)));
  std::int64_t first = layout.runs(0, position).front().global_lo;
  return test::global_offset(layout, position)[0] == first &&
                 layout.local_shape(position)[0] == size_of(layout.runs(0, position))
             ? out
             : "inconsistent";
}

std::string shape_and_offset_text(const Layout& layout, std::int32_t position) {
  return fmt::format("{}@{}", comma_text(layout.local_shape(position)),
                     comma_text(test::global_offset(layout, position)));
}

struct LayoutCounts {
  int rows = 0, ranks = 0;
};

// Reads "mesh MESH ..." lines and calls `check(mesh, rest of the mesh line, key, values)` for the
// others.
template <class Check>
LayoutCounts for_each_row(const std::string& file, const Check& check) {
  LayoutCounts counts;
  MeshRef mesh;
  std::string rest;
  for (const std::string& line : torch_lines(file)) {
    if (line.substr(0, 5) == "mesh ") {
      std::size_t space = line.find(' ', 5);
      mesh = torch_mesh(line.substr(5, space - 5));
      rest = line.substr(space + 1);
      continue;
    }
    auto [key, values] = keyed_values(line);
    CAPTURE(file, shape_text(*mesh), rest, key);
    REQUIRE(static_cast<std::int32_t>(values.size()) == mesh->size());
    check(mesh, rest, key, values);
    ++counts.rows;
    counts.ranks += mesh->size();
  }
  return counts;
}

}  // namespace

TEST_CASE("index sets of one dim are PyTorch's") {
  LayoutCounts counts =
      for_each_row("index_sets.txt", [](const MeshRef& mesh, const std::string& placements,
                                        const std::string& length, const auto& values) {
        Layout layout = parse_layout(length, "f32", mesh, placements);
        std::vector<std::string> ours;
        for (std::int32_t position = 0; position < mesh->size(); ++position)
          ours.push_back(index_set_text(layout, position));
        CHECK(ours == values);
      });
  CHECK(counts.rows == 2919);
  CHECK(counts.ranks == 17034);
}

TEST_CASE("local shapes and global offsets are PyTorch's") {
  LayoutCounts counts =
      for_each_row("local_shapes.txt", [](const MeshRef& mesh, const std::string& shape,
                                          const std::string& placements, const auto& values) {
        Layout layout =
            parse_layout(shape.substr(std::string("shape ").size()), "f32", mesh, placements);
        std::vector<std::string> ours, theirs;
        for (std::int32_t position = 0; position < mesh->size(); ++position) {
          const std::string& value = values[static_cast<std::size_t>(position)];
          theirs.push_back(value == "=" ? theirs.back() : value);
          ours.push_back(shape_and_offset_text(layout, position));
        }
        CHECK(ours == theirs);
      });
  CHECK(counts.rows == 1997);
  CHECK(counts.ranks == 13047);
}

TEST_CASE("local shapes under shard orders are PyTorch's") {
  LayoutCounts counts =
      for_each_row("shard_orders.txt", [](const MeshRef& mesh, const std::string& shape,
                                          const std::string& placements, const auto& values) {
        Layout layout =
            parse_layout(shape.substr(std::string("shape ").size()), "f32", mesh, placements);
        CHECK_FALSE(layout.has_default_order());
        std::vector<std::string> ours;
        for (std::int32_t position = 0; position < mesh->size(); ++position)
          ours.push_back(comma_text(layout.local_shape(position)));
        CHECK(ours == values);
      });
  CHECK(counts.rows == 260);
  CHECK(counts.ranks == 3128);
}

}  // namespace reshard
