// SPDX-License-Identifier: BSD-3-Clause
// PyTorch's tables: torch.chunk, left-to-right nesting, _StridedShard.
#include <catch2/catch.hpp>

#include <set>

#include "tests/core/layout/pieces_text.h"
#include "tests/support/layout_facts.h"

using namespace reshard;
using Texts = std::vector<std::string>;

TEST_CASE("Shard cuts by torch.chunk") {
  struct Row {
    std::int64_t length, n;
    std::vector<std::int64_t> sizes, offsets;
  };
  const std::vector<Row> table{{7, 4, {2, 2, 2, 1}, {0, 2, 4, 6}},
                               {5, 4, {2, 2, 1, 0}, {0, 2, 4, 5}},
                               {6, 4, {2, 2, 2, 0}, {0, 2, 4, 6}},
                               {10, 4, {3, 3, 3, 1}, {0, 3, 6, 9}},
                               {9, 4, {3, 3, 3, 0}, {0, 3, 6, 9}},
                               {3, 4, {1, 1, 1, 0}, {0, 1, 2, 3}},
                               {2, 4, {1, 1, 0, 0}, {0, 1, 2, 2}},
                               {1, 4, {1, 0, 0, 0}, {0, 1, 1, 1}},
                               {0, 4, {0, 0, 0, 0}, {0, 0, 0, 0}},
                               {8, 3, {3, 3, 2}, {0, 3, 6}},
                               {13, 4, {4, 4, 4, 1}, {0, 4, 8, 12}},
                               {14, 4, {4, 4, 4, 2}, {0, 4, 8, 12}},
                               {17, 8, {3, 3, 3, 3, 3, 2, 0, 0}, {0, 3, 6, 9, 12, 15, 17, 17}}};
  for (const Row& row : table) {
    INFO("length " << row.length << " over " << row.n);
    Layout layout =
        parse_layout(std::to_string(row.length), "f32",
                     std::make_shared<const Mesh>(parse_mesh(std::to_string(row.n))), "S(0)");
    std::vector<std::int64_t> sizes, offsets;
    for (std::int32_t r = 0; r < row.n; ++r) {
      sizes.push_back(layout.local_shape(r)[0]);
      // The offset of an empty shard is the dim's length (pytorch PR #150862), which is where the
      // chunk rule ends too.
      offsets.push_back(test::global_offset(layout, r)[0]);
    }
    CHECK(sizes == row.sizes);
    CHECK(offsets == row.offsets);
  }
}

TEST_CASE("4096 rows over dp=30 within tp=8: 18 rows x 28, then 8, then none at offset 4096") {
  Layout layout = parse_layout(
      "4096", "f32", std::make_shared<const Mesh>(parse_mesh("dp=30,tp=8")), "_S(0,8)S(0)");
  for (std::int32_t tp = 0; tp < 8; ++tp) {
    auto position = [&](std::int32_t dp) { return dp * 8 + tp; };
    for (std::int32_t dp = 0; dp < 28; ++dp) {
      CHECK(layout.local_shape(position(dp))[0] == 18);
      CHECK(test::global_offset(layout, position(dp))[0] == tp * 512 + dp * 18);
    }
    CHECK(layout.local_shape(position(28))[0] == 8);
    CHECK(layout.local_shape(position(29))[0] == 0);
    CHECK(test::global_offset(layout, position(29))[0] == 4096);
  }
}

TEST_CASE("several axes on one dim nest from left to right") {
  CHECK(pieces_text(5, "2x3", "S(0)S(0)") == Texts{"0", "1", "2", "3", "4", ""});
  CHECK(pieces_text(5, "2x2", "S(0)S(0)") == Texts{"0-1", "2", "3", "4"});
  CHECK(pieces_text(7, "2x2", "S(0)S(0)") == Texts{"0-1", "2-3", "4-5", "6"});
  CHECK(pieces_text(9, "2x2", "S(0)S(0)") == Texts{"0-2", "3-4", "5-6", "7-8"});
  CHECK(pieces_text(10, "2x2", "S(0)S(0)") == Texts{"0-2", "3-4", "5-7", "8-9"});
  CHECK(pieces_text(3, "2x2", "S(0)S(0)") == Texts{"0", "1", "2", ""});
  CHECK(pieces_text(13, "4x2", "S(0)S(0)") ==
        Texts{"0-1", "2-3", "4-5", "6-7", "8-9", "10-11", "12", ""});
  CHECK(pieces_text(18, "4x2", "S(0)S(0)") ==
        Texts{"0-2", "3-4", "5-7", "8-9", "10-12", "13-14", "15-16", "17"});
  CHECK(pieces_text(17, "2x2x2", "S(0)S(0)S(0)") ==
        Texts{"0-2", "3-4", "5-6", "7-8", "9-10", "11-12", "13-14", "15-16"});
}

TEST_CASE("empty nested shards lie at the dim's full length") {
  auto offset = [](const char* shape, const char* mesh, std::int32_t position) {
    return test::global_offset(
        parse_layout(shape, "f32", std::make_shared<const Mesh>(parse_mesh(mesh)), "S(0)S(0)"),
        position)[0];
  };
  CHECK(offset("5", "2x3", 5) == 5);
  CHECK(offset("3", "2x2", 3) == 3);
  CHECK(offset("13", "4x2", 7) == 13);
}

TEST_CASE("nested chunks are not flat chunks, at exactly these lengths") {
  auto differ = [](const std::string& mesh, const std::string& flat) {
    std::set<std::int64_t> out;
    for (std::int64_t length = 0; length < 40; ++length)
      if (pieces_text(length, mesh, "S(0)S(0)") != pieces_text(length, flat, "S(0)"))
        out.insert(length);
    return out;
  };
  CHECK(differ("2x2", "4") == std::set<std::int64_t>{2, 5, 6, 9, 10, 13, 14, 17, 18, 21, 22, 25, 26,
                                                     29, 30, 33, 34, 37, 38});
  CHECK(differ("4x2", "8") == std::set<std::int64_t>{2,  3,  4,  9,  10, 11, 12, 14, 17,
                                                     18, 19, 20, 21, 22, 25, 26, 27, 28,
                                                     29, 30, 33, 34, 35, 36, 37, 38});
  std::set<std::int64_t> six;
  for (std::int64_t length = 2; length < 40; ++length)
    if (length % 6 >= 1 && length % 6 <= 4) six.insert(length);
  CHECK(differ("2x3", "6") == six);
}

TEST_CASE("_StridedShard joins chunk r of every piece") {
  CHECK(pieces_text(5, "2", "_S(0,2)") == Texts{"0-1,3", "2,4"});
  CHECK(pieces_text(6, "2", "_S(0,2)") == Texts{"0-1,3-4", "2,5"});
  CHECK(pieces_text(6, "2", "_S(0,3)") == Texts{"0,2,4", "1,3,5"});
  CHECK(pieces_text(8, "2", "_S(0,2)") == Texts{"0-1,4-5", "2-3,6-7"});
  CHECK(pieces_text(7, "2", "_S(0,3)") == Texts{"0-1,3-4,6", "2,5"});
  CHECK(pieces_text(9, "4", "_S(0,2)") == Texts{"0-1,5", "2-3,6", "4,7", "8"});
  CHECK(pieces_text(6, "6", "_S(0,2)") == Texts{"0,3", "1,4", "2,5", "", "", ""});
  CHECK(pieces_text(31, "2", "_S(0,3)") == Texts{"0-5,11-16,22-26", "6-10,17-21,27-30"});
}

TEST_CASE("_StridedShard with a Shard to its right or left") {
  CHECK(pieces_text(8, "2x2", "_S(0,2)S(0)") == Texts{"0-1", "4-5", "2-3", "6-7"});
  CHECK(pieces_text(15, "4x2", "_S(0,2)S(0)") ==
        Texts{"0-1", "8-9", "2-3", "10-11", "4-5", "12-13", "6-7", "14"});
  CHECK(pieces_text(18, "4x2", "_S(0,2)S(0)") ==
        Texts{"0-2", "9-11", "3-5", "12-14", "6-8", "15-17", "", ""});
  CHECK(pieces_text(5, "2x2", "_S(0,2)S(0)") == Texts{"0-1", "3", "2", "4"});
  CHECK(pieces_text(18, "4x2", "S(0)_S(0,2)") ==
        Texts{"0-1,3", "2,4", "5-6,8", "7,9", "10-11,13", "12,14", "15,17", "16"});
  CHECK(pieces_text(16, "2x2x2", "S(0)_S(0,2)S(0)") ==
        Texts{"0-1", "4-5", "2-3", "6-7", "8-9", "12-13", "10-11", "14-15"});
  Layout layout =
      parse_layout("18", "f32", std::make_shared<const Mesh>(parse_mesh("4x2")), "_S(0,2)S(0)");
  CHECK(test::global_offset(layout, 6)[0] == 18);
}

TEST_CASE(
    "a shard order and its strided spelling agree where sizes divide, and differ at exactly these "
    "lengths") {
  // Order (1,0): axis 1 cuts first. Its spelling by strides is _S(0, size of axis 1) on axis 0.
  auto differ = [](const std::string& mesh, const std::string& strided) {
    std::set<std::int64_t> out;
    for (std::int64_t length = 1; length < 41; ++length)
      if (pieces_text(length, mesh, "S(0)[1]S(0)[0]") != pieces_text(length, mesh, strided))
        out.insert(length);
    return out;
  };
  CHECK(differ("3x2", "_S(0,2)S(0)") == std::set<std::int64_t>{7, 13, 19, 25, 31, 37});
  CHECK(differ("4x2", "_S(0,2)S(0)") == std::set<std::int64_t>{9, 17, 25, 33});
  CHECK(differ("3x3", "_S(0,3)S(0)") == std::set<std::int64_t>{11, 20, 29, 38});
  CHECK(differ("8x2", "_S(0,2)S(0)") == std::set<std::int64_t>{17, 33});
  CHECK(differ("4x3", "_S(0,3)S(0)") == std::set<std::int64_t>{14, 16, 25, 26, 28, 37, 38, 40});
  CHECK(pieces_text(7, "3x2", "_S(0,2)S(0)") == Texts{"0-1", "4", "2-3", "5", "6", ""});
  CHECK(pieces_text(7, "3x2", "S(0)[1]S(0)[0]") == Texts{"0-1", "4", "2-3", "5", "", "6"});
}

TEST_CASE("shard orders and their strided spellings hold the same where sizes divide") {
  // Order -> strided: sf of an axis is the product of the sizes of axes before it in the order that
  // have larger numbers.
  CHECK(pieces_text(48, "4x3x2", "S(0)[1]S(0)[2]S(0)[0]") ==
        pieces_text(48, "4x3x2", "_S(0,2)_S(0,2)S(0)"));  // order (2,0,1)
  // Strided -> order.
  CHECK(pieces_text(48, "2x3x4", "S(0)_S(0,4)S(0)") ==
        pieces_text(48, "2x3x4", "S(0)[0]S(0)[2]S(0)[1]"));  // (0,2,1)
  CHECK(pieces_text(48, "2x3x4", "_S(0,12)_S(0,4)S(0)") ==
        pieces_text(48, "2x3x4", "S(0)[2]S(0)[1]S(0)[0]"));  // (2,1,0)
  CHECK(pieces_text(48, "2x3x4", "_S(0,3)S(0)S(0)") ==
        pieces_text(48, "2x3x4", "S(0)[1]S(0)[0]S(0)[2]"));  // (1,0,2)
  // [S0,_S(0,3),S0] is no order at all.
  for (const char* order :
       {"S(0)S(0)S(0)", "S(0)[0]S(0)[2]S(0)[1]", "S(0)[1]S(0)[0]S(0)[2]", "S(0)[2]S(0)[0]S(0)[1]",
        "S(0)[1]S(0)[2]S(0)[0]", "S(0)[2]S(0)[1]S(0)[0]"})
    CHECK(pieces_text(72, "2x3x4", "S(0)_S(0,3)S(0)") != pieces_text(72, "2x3x4", order));
}

TEST_CASE("boxes of a shard are its runs in every dim") {
  Layout layout =
      parse_layout("6,5", "f32", std::make_shared<const Mesh>(parse_mesh("2x2")), "_S(0,3)S(1)");
  CHECK(layout.boxes(1) ==
        std::vector<Box>{Box{{0, 3}, {1, 5}}, Box{{2, 3}, {3, 5}}, Box{{4, 3}, {5, 5}}});
  CHECK(layout.local_shape(1) == Shape{3, 2});
  Layout scalar = parse_layout("", "f32", std::make_shared<const Mesh>(parse_mesh("2")), "P");
  CHECK(scalar.boxes(0) == std::vector<Box>{Box{}});
  Layout empty = parse_layout("0,4", "f32", std::make_shared<const Mesh>(parse_mesh("2")), "S(1)");
  CHECK(empty.boxes(0).empty());
  CHECK(empty.local_shape(0) == Shape{0, 2});
}

TEST_CASE("every element lies on exactly one rank of each replica, whatever the placements") {
  for (const char* placements : {"S(0)S(0)S(0)", "_S(0,2)S(0)S(0)", "S(0)[2]S(0)[0]S(0)[1]",
                                 "_S(0,5)_S(0,3)S(0)", "S(0)_S(0,40)S(0)"})
    for (std::int64_t length = 0; length < 30; ++length) {
      Layout layout = parse_layout(std::to_string(length), "f32",
                                   std::make_shared<const Mesh>(parse_mesh("2x3x2")), placements);
      std::vector<int> holders(static_cast<std::size_t>(length), 0);
      for (std::int32_t position = 0; position < 12; ++position)
        for (const Box& box : layout.boxes(position))
          for (std::int64_t i = box.lo[0]; i < box.hi[0]; ++i)
            ++holders[static_cast<std::size_t>(i)];
      INFO(placements << " of " << length);
      CHECK(std::count(holders.begin(), holders.end(), 1) == length);
    }
}
