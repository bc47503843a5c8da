// SPDX-License-Identifier: BSD-3-Clause
// Texts that PyTorch prints, reshard prints and reads in the same form.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/core/torch/expectations.h"
#include "tests/support/layout_facts.h"

namespace reshard {
namespace {

struct TextCounts {
  int placements = 0, dtypes = 0, same = 0, read = 0;
};

void check_placement(const std::string& str, const std::string& repr_text) {
  for (const std::string& written : {str, repr_text}) {
    Placement placement = parse_placements(written, 1, kMaxDims, "placement").placements.at(0);
    CHECK(text(placement) == str);
    CHECK(test::repr(placement) == repr_text);
  }
}

// "Spec(f32[8, 8](S(0)R))" -> "S(0)R".
std::string placements_in(const std::string& spec) {
  std::size_t begin = spec.find("](");
  RESHARD_CHECK(begin != std::string::npos && spec.size() > begin + 4, spec);
  return spec.substr(begin + 2, spec.size() - 2 - (begin + 2));
}

void check_spec(const std::vector<std::string>& row, TextCounts& counts) {
  MeshRef mesh = torch_mesh(row.at(1));
  Shape shape = parse_shape(row.at(2));
  DType dtype = parse_dtype(row.at(3));
  std::vector<int> order;
  for (const std::string& position : parts_of(row.at(5), ',')) order.push_back(std::stoi(position));
  Layout layout(shape, dtype, mesh,
                parse_placements(row.at(4), mesh->axes(), shape.size(), "repr").placements, order);
  std::string printed = placements_in(row.at(6));
  CHECK(parse_layout(row.at(2), row.at(3), mesh, printed) == layout);
  CHECK(parse_layout(row.at(2), row.at(3), mesh, layout.placements_text()) == layout);
  if (row.at(7) == "same") {
    CHECK(layout.placements_text() == printed);
    ++counts.same;
  } else {
    CHECK(row.at(7) == "read");
    ++counts.read;
  }
}

}  // namespace

TEST_CASE("texts are PyTorch's") {
  TextCounts counts;
  for (const std::string& line : torch_lines("texts.txt")) {
    CAPTURE(line);
    std::vector<std::string> row = parts_of(line, '|');
    if (row[0] == "placement") {
      check_placement(row.at(1), row.at(2));
      ++counts.placements;
    } else if (row[0] == "dtype") {
      CHECK(parse_dtype(row.at(1)) == parse_dtype(row.at(2)));
      ++counts.dtypes;
    } else {
      REQUIRE(row.size() == 8);
      check_spec(row, counts);
    }
  }
  CHECK(counts.placements == 29);
  CHECK(counts.dtypes == 12);
  CHECK(counts.same == 162);
  CHECK(counts.read == 22);
}

}  // namespace reshard
