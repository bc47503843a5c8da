// SPDX-License-Identifier: BSD-3-Clause
// The record of a buffer's contents, box by box, against a check of every piece: random boxes, few
// and many, that straight cuts separate or not.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "core/proof/contents.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr std::int64_t kExtent = 64;

// Cuts the box again and again; one cut in eight makes a pinwheel of five, which no line separates.
void cut_up(Prng& prng, const Box& box, std::size_t wanted, std::vector<Box>& out) {
  std::vector<Box> open{box};
  while (!open.empty() && open.size() + out.size() < wanted) {
    std::swap(open[to_index(prng.below(static_cast<std::int64_t>(open.size())))], open.back());
    Box one = open.back();
    open.pop_back();
    int d = static_cast<int>(prng.below(one.dims()));
    if (one.dims() >= 2 && one.extent(0) >= 3 && one.extent(1) >= 3 && prng.below(8) == 0) {
      std::int64_t x0 = one.lo[0], x1 = x0 + 1, x2 = one.hi[0] - 1, x3 = one.hi[0];
      std::int64_t y0 = one.lo[1], y1 = y0 + 1, y2 = one.hi[1] - 1, y3 = one.hi[1];
      for (auto [xl, xh, yl, yh] :
           {std::array{x0, x2, y0, y1}, std::array{x2, x3, y0, y2}, std::array{x1, x3, y2, y3},
            std::array{x0, x1, y1, y3}, std::array{x1, x2, y1, y2}}) {
        Box part = one;
        part.lo[0] = xl, part.hi[0] = xh, part.lo[1] = yl, part.hi[1] = yh;
        open.push_back(part);
      }
    } else if (one.extent(d) < 2) {
      out.push_back(one);
    } else {
      Box low = one, high = one;
      low.hi[d] = high.lo[d] = one.lo[d] + prng.between(1, one.extent(d) - 1);
      open.push_back(low);
      open.push_back(high);
    }
  }
  out.insert(out.end(), open.begin(), open.end());
}

Box drawn_box(Prng& prng, int dims) {
  Box out{DimVector(dims, 0), DimVector(dims, 0)};
  for (int d = 0; d < dims; ++d) {
    out.lo[d] = prng.below(kExtent);
    out.hi[d] = prng.between(out.lo[d] + 1, kExtent);
  }
  return out;
}

// Disjoint boxes, and in half of the draws one more that may overlap some.
std::vector<Box> drawn_boxes(Prng& prng, int dims) {
  Box whole{DimVector(dims, 0), DimVector(dims, kExtent)};
  std::vector<Box> out;
  cut_up(prng, whole, to_index(prng.between(2, 60)), out);
  for (std::size_t i = out.size(); i > 1; --i)
    std::swap(out[i - 1], out[to_index(prng.below(static_cast<std::int64_t>(i)))]);
  out.resize(out.size() - to_index(prng.below(static_cast<std::int64_t>(out.size() / 2 + 1))));
  if (prng.below(2) == 0) out.push_back(drawn_box(prng, dims));
  return out;
}

bool meet(const Box& a, const Box& b) {
  for (int d = 0; d < a.dims(); ++d)
    if (a.hi[d] <= b.lo[d] || b.hi[d] <= a.lo[d]) return false;
  return true;
}

}  // namespace

TEST_CASE("contents: two that overlap are found, and only where there are two") {
  int with = 0, without = 0;
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    int dims = static_cast<int>(prng.between(1, 3));
    std::vector<Box> boxes = drawn_boxes(prng, dims);
    Contents contents(dims);
    for (const Box& box : boxes) contents.write({box, DimVector(dims, 0), 0, 0});
    bool any = false;
    for (std::size_t a = 0; a < boxes.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) any = any || meet(boxes[a], boxes[b]);
    auto found = contents.first_overlap();
    CHECK(found.has_value() == any);
    if (found) CHECK(meet(boxes[found->first], boxes[found->second]));
    if (found) CHECK(found->first != found->second);
    ++(any ? with : without);
  }
  CHECK(with > 500);
  CHECK(without > 500);
}

TEST_CASE("contents: all that meets a box is read, cut to it, as pieces are added") {
  for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    int dims = static_cast<int>(prng.between(1, 3));
    std::vector<Box> boxes = drawn_boxes(prng, dims);
    Contents contents(dims);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      contents.write({boxes[i], DimVector(dims, 0), 0, static_cast<std::int32_t>(i)});
      if (prng.below(4) != 0) continue;
      Box asked = drawn_box(prng, dims);
      std::set<std::int32_t> expected, found;
      std::int64_t volume = 0;
      for (std::size_t k = 0; k <= i; ++k)
        if (meet(boxes[k], asked)) {
          expected.insert(static_cast<std::int32_t>(k));
          volume += intersect(boxes[k], asked).volume();
        }
      std::int64_t covered = contents.read(asked, [&](const KnownBox& piece) {
        CHECK(found.insert(piece.writer).second);
        CHECK(piece.box == intersect(boxes[to_index(piece.writer)], asked));
      });
      CHECK(found == expected);
      CHECK(covered == volume);
    }
  }
}
