// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "core/bytes/box_copy.h"
#include "sim/store/store.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Byte offset of an index of a dense row-major array.
std::size_t offset_of(const Shape& shape, const DimVector& index, std::int64_t width) {
  std::int64_t at = 0;
  for (int d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
  return static_cast<std::size_t>(at * width);
}

struct Case {
  Shape from, to;
  DimVector from_lo, to_lo, extents;
};

// A box of 1 to `largest` per dim in two arrays that leave more or less room around it.
Case draw_case(Prng& prng, std::int64_t dims, std::int64_t largest) {
  Case out;
  for (std::int64_t d = 0; d < dims; ++d) {
    std::int64_t extent = prng.between(1, largest), lo = prng.one_in(2) ? 0 : prng.below(3),
                 to_lo = prng.one_in(2) ? 0 : prng.below(3);
    out.extents.push_back(extent);
    out.from_lo.push_back(lo);
    out.to_lo.push_back(to_lo);
    out.from.push_back(lo + extent + (prng.one_in(2) ? 0 : prng.below(3)));
    out.to.push_back(to_lo + extent + (prng.one_in(2) ? 0 : prng.below(3)));
  }
  return out;
}

std::vector<std::byte> random_bytes(Prng& prng, const Shape& shape, std::int64_t width) {
  std::vector<std::byte> out(static_cast<std::size_t>(element_count(shape) * width));
  for (std::byte& byte : out) byte = static_cast<std::byte>(prng.next() & 0xff);
  return out;
}

// Element by element.
std::vector<std::byte> copied_plainly(std::vector<std::byte> to, const std::vector<std::byte>& from,
                                      const Case& c, std::int64_t width) {
  DimVector index(c.extents.size(), 0);
  for (std::int64_t i = 0; i < element_count(c.extents); ++i) {
    std::int64_t rest = i;
    for (int d = c.extents.size() - 1; d >= 0; --d) {
      index[d] = rest % c.extents[d];
      rest /= c.extents[d];
    }
    DimVector a = index, b = index;
    for (int d = 0; d < index.size(); ++d) {
      a[d] += c.from_lo[d];
      b[d] += c.to_lo[d];
    }
    std::memcpy(to.data() + offset_of(c.to, b, width), from.data() + offset_of(c.from, a, width),
                static_cast<std::size_t>(width));
  }
  return to;
}

void check_copy(Prng& prng, const Case& c, std::int64_t width) {
  std::vector<std::byte> from = random_bytes(prng, c.from, width),
                         to = random_bytes(prng, c.to, width);
  std::vector<std::byte> expected = copied_plainly(to, from, c, width);
  // In the store's own memory, whose alignment decides how rows are written.
  Block block(static_cast<std::int64_t>(to.size()));
  std::memcpy(block.data(), to.data(), to.size());
  copy_box(block.data(), {c.to, c.to_lo}, from.data(), {c.from, c.from_lo}, c.extents, width);
  REQUIRE(std::equal(expected.begin(), expected.end(), block.data()));
}

}  // namespace

TEST_CASE("boxes of 1 to 8 dims are copied, and nothing beside them") {
  Prng prng(5);
  for (std::int64_t dims = 1; dims <= 8; ++dims)
    for (int round = 0; round < 150; ++round)
      for (std::int64_t width : {1, 2, 4, 8})
        check_copy(prng, draw_case(prng, dims, dims <= 3 ? 9 : dims <= 5 ? 4 : 2), width);
}

TEST_CASE("large boxes are copied, whatever the alignment of their rows") {
  Prng prng(6);
  for (std::int64_t column : {0, 3, 61})
    for (std::int64_t width : {1, 4}) {
      Case c{Shape{700, 1700}, Shape{701, 1801}, DimVector{1, column}, DimVector{0, 2 * column},
             DimVector{698, 1603}};
      check_copy(prng, c, width);
    }
  // Rows of whole cache lines, a number of them that is no multiple of four.
  Case lines{Shape{1030, 2048}, Shape{1027, 1024}, DimVector{2, 512}, DimVector{0, 0},
             DimVector{1027, 1024}};
  check_copy(prng, lines, 1);
  // The same, but for what lies beside them: lines of the destination that begin anywhere.
  lines.to = Shape{1027, 1037};
  check_copy(prng, lines, 1);
  // Rows that end within a line, in a destination of whole ones.
  check_copy(prng,
             {Shape{1030, 2048}, Shape{1027, 1088}, DimVector{2, 512}, DimVector{0, 0},
              DimVector{1027, 1050}},
             1);
  // A whole array is one row.
  Case whole{Shape{1100, 1000}, Shape{1100, 1000}, DimVector{0, 0}, DimVector{0, 0},
             DimVector{1100, 1000}};
  check_copy(prng, whole, 1);
}

TEST_CASE("contiguous dims are joined to rows") {
  Shape a{4, 6, 5, 8}, b{9, 6, 5, 8};
  DimVector zero(4, 0);
  std::array<BoxPlace, 2> places{{{a, zero}, {b, zero}}};
  using Pair = std::array<std::int64_t, 2>;
  BoxRows<Pair> whole(Pair{}, places, DimVector{4, 6, 5, 8}, 4);
  CHECK(whole.outer_dims == 0);
  CHECK(whole.row_bytes == 4 * 6 * 5 * 8 * 4);
  BoxRows<Pair> cut(Pair{}, places, DimVector{4, 6, 3, 8}, 4);
  // Rows of 3 x 8; the two dims above them join to one of 24 steps.
  CHECK(cut.row_bytes == 3 * 8 * 4);
  REQUIRE(cut.outer_dims == 1);
  CHECK(cut.outer[0].extent == 24);
  CHECK(cut.outer[0].stride == Pair{5 * 8 * 4, 5 * 8 * 4});
  BoxRows<Pair> column(Pair{}, places, DimVector{4, 1, 1, 1}, 4);
  CHECK(column.row_bytes == 4);
  REQUIRE(column.outer_dims == 1);
  CHECK(column.outer[0].extent == 4);
}

TEST_CASE("a cleared box is zero and its surroundings are kept") {
  Prng prng(8);
  for (int round = 0; round < 200; ++round) {
    Case c = draw_case(prng, prng.between(1, 5), 4);
    std::vector<std::byte> to = random_bytes(prng, c.to, 2),
                           zeros(static_cast<std::size_t>(element_count(c.from)) * 2);
    std::vector<std::byte> expected = copied_plainly(to, zeros, c, 2);
    clear_box(to.data(), {c.to, c.to_lo}, c.extents, 2);
    REQUIRE(to == expected);
  }
}
