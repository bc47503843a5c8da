// SPDX-License-Identifier: BSD-3-Clause
// An index of boxes against looking at all of them.
#include <catch2/catch.hpp>

#include <set>

#include "core/layout/box_index.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Box draw_box(Prng& prng, int dims) {
  Box out;
  for (int d = 0; d < dims; ++d) {
    out.lo.push_back(prng.below(9));
    out.hi.push_back(out.lo[d] + prng.between(1, 4));
  }
  return out;
}

// Elements as numbers of a cube that holds all drawn boxes.
std::set<DimVector> elements(const Box& box) {
  std::set<DimVector> out;
  DimVector at(box.dims());
  do {
    DimVector index = box.lo;
    for (int d = 0; d < box.dims(); ++d) index[d] += at[d];
    out.insert(index);
  } while (next_index(at, [&](int d) { return box.extent(d); }));
  return out;
}

}  // namespace

TEST_CASE("an index finds the boxes that meet another") {
  int met = 0, apart = 0;
  for (std::uint64_t seed = 1; seed <= 2000 / kOneOf; ++seed) {
    Prng prng(seed);
    CAPTURE(seed);
    int dims = static_cast<int>(prng.between(1, 3));
    std::vector<Box> boxes;
    for (std::int64_t i = prng.below(8); i > 0; --i) boxes.push_back(draw_box(prng, dims));
    BoxIndex index(boxes);
    Box box = draw_box(prng, dims);
    std::set<std::size_t> found, expected;
    index.for_each_meeting(box, [&](std::size_t i) { CHECK(found.insert(i).second); });
    std::optional<std::pair<std::size_t, std::size_t>> overlap;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (!intersect(boxes[i], box).empty()) expected.insert(i);
      for (std::size_t k = i + 1; k < boxes.size() && !overlap; ++k)
        if (!intersect(boxes[i], boxes[k]).empty()) overlap = {i, k};
    }
    CHECK(found == expected);
    CHECK(index.overlap() == overlap);
    met += !expected.empty();
    apart += !overlap && boxes.size() > 1;
  }
  CHECK(met > 600 / kOneOf);
  CHECK(apart > 300 / kOneOf);
}

TEST_CASE("what is left of boxes without another is disjoint and complete") {
  for (std::uint64_t seed = 1; seed <= 2000 / kOneOf; ++seed) {
    Prng prng(seed);
    CAPTURE(seed);
    int dims = static_cast<int>(prng.between(1, 3));
    Box box = draw_box(prng, dims);
    std::vector<Box> left{box};
    std::set<DimVector> expected = elements(box);
    for (int i = 0; i < 3; ++i) {
      Box other = draw_box(prng, dims);
      subtract(other, left);
      for (const DimVector& index : elements(other)) expected.erase(index);
    }
    std::set<DimVector> found;
    for (const Box& each : left)
      for (const DimVector& index : elements(each)) CHECK(found.insert(index).second);
    CHECK(found == expected);
  }
}
