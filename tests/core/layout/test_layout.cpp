// SPDX-License-Identifier: BSD-3-Clause
// Layouts made in code, without a reader that checks them first: what they refuse, and when two are
// equal.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/layout/layout.h"
#include "tests/support/cases.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::string refusal(const Shape& shape, const char* mesh, const std::vector<Placement>& placements,
                    const std::vector<int>& order = {}) {
  try {
    Layout(shape, DType::F32, mesh_of(mesh), placements, order);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string mesh_refusal(const std::vector<std::int32_t>& shape, const std::vector<int>& ranks,
                         const std::vector<std::string>& names = {}) {
  std::vector<Rank> of;
  for (int rank : ranks) of.push_back(Rank{rank});
  try {
    Mesh(shape, of, names);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a layout made in code is refused by what is wrong with it") {
  Placement whole = Placement::replicate(), rows = Placement::shard(0);
  CHECK(refusal({4, 4}, "2x2", {rows, whole}) == "no error");
  CHECK(refusal({4, 4}, "2x2", {rows}) == "placements: expected 2, one per mesh axis, found 1");
  for (int dim : {2, 3, -1})
    CHECK(refusal({4, 4}, "2", {Placement::shard(dim)}) ==
          "placements: expected a tensor dim below 2, found S(" + std::to_string(dim) + ")");
  CHECK(refusal({4, 4}, "2", {Placement::strided_shard(2, 2)}) ==
        "placements: expected a tensor dim below 2, found _S(2, 2)");
  CHECK(refusal({}, "2", {rows}) == "placements: expected a tensor dim below 0, found S(0)");
  for (std::int64_t factor : {std::int64_t{0}, std::int64_t{-1}, kMaxRanks + 1})
    CHECK(refusal({4}, "2", {Placement::strided_shard(0, factor)}) ==
          "placements: expected a split factor from 1 to 1048576, found " + std::to_string(factor));
  CHECK(refusal({4}, "2", {Placement::strided_shard(0, kMaxRanks)}) == "no error");
  CHECK(refusal({4}, "2", {Placement::strided_shard(0, 1)}) == "no error");
  CHECK(refusal({4, -1}, "2", {rows}) == "shape: expected extents of at least 0, found -1");
  // An empty tensor may have extents whose product would be too large, but none that is alone.
  CHECK(refusal({0, kMaxBytes, kMaxBytes}, "2", {rows}) == "no error");
  CHECK(refusal({0, kMaxBytes + 1}, "2", {rows}) ==
        "shape: expected at most 2^62 bytes, found more");
  CHECK(refusal({kMaxBytes / 4}, "2", {rows}) == "no error");
  CHECK(refusal({kMaxBytes / 4, 1}, "2", {rows}) == "no error");
  CHECK(refusal({2, kMaxBytes / 4}, "2", {rows}) ==
        "shape: expected at most 2^62 bytes, found more in 2,1152921504606846976");
  // 64 x 2^20 pieces would be kept; one more are too many, whatever few elements each has.
  CHECK(refusal({kMaxBytes / 4}, "65", {Placement::strided_shard(0, kMaxRanks)}) ==
        "placements: expected at most 2^26 pieces of dim 0, found more because of split factor "
        "1048576");
  CHECK(
      refusal({8, 1 << 20}, "4096x17", {Placement::strided_shard(1, 1024), Placement::shard(1)}) ==
      "placements: expected at most 2^26 pieces of dim 1, found more because of split factor 1");
  // Of few elements there are few pieces.
  CHECK(refusal({3}, "65", {Placement::strided_shard(0, kMaxRanks)}) == "no error");
}

TEST_CASE("a shard order is a permutation of the axes that shard a dim") {
  Placement whole = Placement::replicate(), rows = Placement::shard(0),
            columns = Placement::shard(1);
  auto wrong = [](int last, int found, int axis) {
    return "shard order: expected each position 0.." + std::to_string(last) +
           " once among the axes that shard a dim, found " + std::to_string(found) + " on axis " +
           std::to_string(axis);
  };
  CHECK(refusal({8, 8}, "2x2", {rows, rows}, {1, 0}) == "no error");
  CHECK(refusal({8, 8}, "2x2", {rows, rows}, {-1, -1}) == "no error");
  CHECK(refusal({8, 8}, "2x2", {rows, rows}, {0, 0}) == wrong(1, 0, 1));
  CHECK(refusal({8, 8}, "2x2", {rows, rows}, {2, 0}) == wrong(1, 2, 0));
  CHECK(refusal({8, 8}, "2x2", {rows, rows}, {0, -1}) == wrong(1, -1, 1));
  CHECK(refusal({8, 8}, "2x2", {rows, whole}, {1, -1}) == wrong(0, 1, 0));
  CHECK(refusal({8, 8}, "2x2x2", {rows, columns, rows}, {1, -1, 0}) == "no error");
  CHECK(refusal({8, 8}, "2x2x2", {rows, columns, rows}, {1, 1, 0}) == wrong(0, 1, 1));
  Layout turned({8, 8}, DType::F32, mesh_of("2x2x2"), {rows, columns, rows}, {1, 0, 0});
  CHECK(turned.stack(0) == std::vector<int>{2, 0});
  CHECK(turned.stack(1) == std::vector<int>{1});
  CHECK_FALSE(turned.has_default_order());
  CHECK(turned.placements_text() == "S(0)[1]S(1)S(0)[0]");
}

TEST_CASE("layouts are equal where every part is") {
  auto layout = [](const char* shape, const char* dtype, const char* mesh, const char* ranks,
                   const char* placements) {
    return parse_layout(shape, dtype, std::make_shared<const Mesh>(parse_mesh(mesh, ranks)),
                        placements);
  };
  Layout one = layout("8,8", "f32", "2x2", "0-3", "S(0)S(0)");
  CHECK(one == layout("8,8", "f32", "2x2", "0-3", "S(0)S(0)"));
  CHECK(one == layout("8,8", "f32", "a=2,b=2", "", "S(0)S(0)"));
  CHECK_FALSE(one == layout("8,9", "f32", "2x2", "0-3", "S(0)S(0)"));
  CHECK_FALSE(one == layout("8,8", "i32", "2x2", "0-3", "S(0)S(0)"));
  CHECK_FALSE(one == layout("8,8", "f32", "2x2", "0,2,1,3", "S(0)S(0)"));
  CHECK_FALSE(one == layout("8,8", "f32", "2x2", "1-4", "S(0)S(0)"));
  CHECK_FALSE(one == layout("8,8", "f32", "2x2", "0-3", "S(0)S(1)"));
  CHECK_FALSE(one == layout("8,8", "f32", "2x2", "0-3", "S(0)[1]S(0)[0]"));
  CHECK_FALSE(layout("8", "f32", "4x1", "", "RR") == layout("8", "f32", "1x4", "", "RR"));
}

TEST_CASE("a mesh made in code is refused by what is wrong with it") {
  CHECK(mesh_refusal({2, 2}, {0, 1, 2, 3}) == "no error");
  CHECK(mesh_refusal({}, {}) == "mesh: expected at least one axis, found none");
  CHECK(mesh_refusal({1, 1, 1, 1, 1}, {7}) == "no error");
  CHECK(mesh_refusal({1, 1, 1, 1, 1, 1}, {7}) == "mesh: expected at most 5 axes, found 6");
  CHECK(mesh_refusal({2, 0}, {}) == "mesh: expected every axis to hold at least 1 rank, found 0");
  CHECK(mesh_refusal({2, -1}, {}) == "mesh: expected every axis to hold at least 1 rank, found -1");
  CHECK(mesh_refusal({1 << 10, 1 << 10, 2}, {}) ==
        "mesh: expected at most 1048576 ranks, found more");
  CHECK(mesh_refusal({1 << 30, 1 << 30, 1 << 30, 1 << 30}, {}) ==
        "mesh: expected at most 1048576 ranks, found more");
  CHECK(mesh_refusal({2, 2}, {0, 1, 2}) == "mesh: expected 4 ranks for its shape, found 3");
  CHECK(mesh_refusal({2}, {0, 1, 2}) == "mesh: expected 2 ranks for its shape, found 3");
  CHECK(mesh_refusal({2, 1}, {0, 1}, {"a"}) == "mesh: expected 2 axis names, found 1");
  CHECK(mesh_refusal({2, 1, 1}, {0, 1}, {"a", "b", "a"}) ==
        "mesh: expected different axis names, found 'a' twice");
  CHECK(mesh_refusal({2, 1}, {0, 1}, {"a", "b"}) == "no error");
  CHECK(mesh_refusal({2}, {-1, 0}) == "mesh: expected ranks between 0 and 1048575, found -1");
  CHECK(mesh_refusal({2}, {1048575, 1048576}) ==
        "mesh: expected ranks between 0 and 1048575, found 1048576");
  CHECK(mesh_refusal({2}, {1048575, 0}) == "no error");
  CHECK(mesh_refusal({3}, {4, 2, 4}) == "mesh: expected different ranks, found 4 twice");
  Mesh turned({2, 2}, {Rank{9}, Rank{3}, Rank{5}, Rank{4}});
  CHECK(turned.position_of(Rank{5}) == 2);
  for (int rank : {0, 2, 6, 8, 10}) CHECK_FALSE(turned.position_of(Rank{rank}));
  Mesh in_line = Mesh::row_major({3}, Rank{5});
  CHECK(in_line.position_of(Rank{7}) == 2);
  CHECK_FALSE(in_line.position_of(Rank{4}));
  CHECK_FALSE(in_line.position_of(Rank{8}));
  CHECK_FALSE(in_line.counts_from_zero());
  CHECK_THROWS_AS(in_line.coordinate(3), CheckFailure);
  CHECK_THROWS_AS(in_line.coordinate(-1), CheckFailure);
}

TEST_CASE("a list of more than 2^20 ranks is refused where it passes them") {
  std::string list = "[";
  for (int i = 1; i < 1 << 20; ++i) list += "0,";
  CHECK_THROWS_WITH(parse_mesh(list + "0]"), "mesh: expected different ranks, found 0 twice");
  CHECK_THROWS_WITH(parse_mesh(list + "0,0]"), "mesh: expected at most 2^20 ranks, found more");
}
