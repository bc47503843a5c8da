// SPDX-License-Identifier: BSD-3-Clause
// Which transitions are allowed, and what Partial means.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/layout/request.h"

using namespace reshard;

namespace {

Request request(const char* from, const char* to, const char* dtype = "f32",
                const char* mesh = "2x3", const char* to_mesh = "", const char* to_ranks = "") {
  auto source = std::make_shared<const Mesh>(parse_mesh(mesh));
  auto destination =
      *to_mesh == '\0' ? source : std::make_shared<const Mesh>(parse_mesh(to_mesh, to_ranks));
  return Request(parse_layout("4,4", dtype, source, from),
                 parse_layout("4,4", dtype, destination, to));
}

void refused(const char* from, const char* to, const char* dtype, const char* what) {
  INFO(from << " -> " << to << " " << dtype);
  CHECK_THROWS_AS(request(from, to, dtype), InputError);
  CHECK_THROWS_WITH(request(from, to, dtype), Catch::Contains(what));
}

}  // namespace

TEST_CASE("forbidden transitions say what and why") {
  refused("S(0)R", "P(avg)R", "f32",
          "axis 0: S(0)->P(avg) is forbidden: only P(sum) can fill elements");
  refused("RS(1)", "RP(bor)", "i32",
          "axis 1: S(1)->P(bor) is forbidden: only P(sum) can fill elements");
  refused("_S(0,2)R", "P(sum)R", "f32",
          "axis 0: _S(0, 2)->P(sum) is forbidden: only plain shards can become Partial");
  refused("S(0)R", "P(sum)R", "bool", "P(sum) is not defined for bool");
  refused("RP(sum)", "RP(max)", "f32",
          "axis 1: P(sum)->P(max) is forbidden: addends of one reduction");
  refused("P(sum)R", "P(avg)R", "f32", "P(sum)->P(avg) is forbidden");
  refused("RR", "P(product)R", "f32", "R->P(product) is forbidden");
  refused("RR", "P(bxor)R", "i32", "R->P(bxor) is forbidden");
  refused("RR", "P(sum)R", "i32", "R->P(sum) is forbidden for i32: it divides");
  refused("P(sum)P(max)", "RR", "f32", "mixed partial ops are forbidden");
  refused("P(sum)P(product)", "RR", "f32", "mixed partial ops are forbidden");
  refused("P(sum)R", "RR", "bool", "P(sum) is not defined for bool");
  refused("P(sum)R", "RR", "f8e4m3", "P(sum) is not defined for f8e4m3");
  refused("P(avg)R", "RR", "i64", "P(avg) is not defined for i64");
  refused("P(min)R", "RR", "c64", "P(min) is not defined for c64");
  refused("P(band)R", "RR", "f32", "P(band) is not defined for f32");
  refused("P(product)R", "RP(sum)", "f32", "turning a folded product into P(sum) is forbidden");
  refused("P(max)R", "RP(sum)", "i32", "R->P(sum) is forbidden for i32: it divides");
  // A kept axis makes both sides one.
  refused("P(max)R", "P(max)P(sum)", "f32", "mixed partial ops are forbidden");
}

TEST_CASE("allowed transitions") {
  CHECK_NOTHROW(request("P(sum)P(avg)", "RR"));
  CHECK_NOTHROW(request("P(bxor)R", "RR", "bool"));
  CHECK_NOTHROW(request("P(max)R", "P(max)R", "bf16"));
  CHECK_NOTHROW(request("RR", "P(sum)P(avg)"));
  CHECK_NOTHROW(request("RR", "P(min)R", "i8"));
  CHECK_NOTHROW(request("RR", "P(sum)R", "c64"));
  // On an axis of one rank all placements mean the same.
  CHECK_NOTHROW(request("S(0)R", "P(sum)R", "i32", "1x3"));
  CHECK_NOTHROW(request("RP(sum)", "R", "f32", "2x3", "4", "6-9"));
}

TEST_CASE("folds, kept addends and divisors") {
  Request folded = request("P(sum)P(avg)", "RS(0)");
  CHECK(folded.fold().addend_count == 6);
  CHECK(folded.fold().fold_count == 6);
  CHECK(folded.fold().divisor == 3);
  CHECK(folded.addend_of(5) == 5);
  CHECK(folded.addends_wanted(0) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});

  Request kept = request("P(sum)P(sum)", "P(sum)R");
  CHECK(kept.fold().fold_count == 3);
  CHECK(kept.addends_wanted(0) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(kept.addends_wanted(4) == std::vector<std::int64_t>{3, 4, 5});

  Request made = request("RP(sum)", "P(sum)R");
  CHECK(made.fold().divisor == 2);
  CHECK(made.fold().fold_count == 3);
  CHECK(request("RR", "P(avg)P(avg)").fold().divisor == 1);
  CHECK(request("RR", "P(sum)P(sum)").fold().divisor == 6);

  // Between meshes of different shape axes do not correspond.
  Request across = request("P(sum)R", "P(sum)", "f32", "2x3", "4", "6-9");
  CHECK(across.fold().fold_count == 2);
  CHECK(across.fold().divisor == 4);
  Request moved = request("P(sum)R", "P(sum)R", "f32", "2x3", "2x3", "6-11");
  CHECK(moved.fold().fold_count == 1);
  CHECK(moved.fold().divisor == 1);
}

TEST_CASE("zero axes: shards are addends of a sum and nothing is divided") {
  Request plain = request("S(0)S(0)", "P(sum)P(sum)", "i32");
  CHECK(plain.fold().zero_axes == std::vector<int>{0, 1});
  CHECK(plain.fold().divisor == 1);
  CHECK(plain.fold().addend_count == 1);
  CHECK(plain.zero_coordinate(0) == 0);
  CHECK(plain.zero_coordinate(4) == 4);
  CHECK(request("S(0)S(0)", "P(sum)R").zero_coordinate(4) == 1);
  CHECK(request("S(0)S(0)", "RP(sum)").zero_coordinate(4) == 1);
  CHECK(request("S(0)S(0)", "RP(sum)").zero_coordinate(5) == 2);

  // Beside other changes: only R -> P(sum) divides, and a product is folded by itself.
  CHECK(request("RS(1)", "P(sum)P(sum)").fold().divisor == 2);
  CHECK(request("P(product)S(0)", "RP(sum)").fold().op == ReduceOp::Product);
  CHECK(request("P(sum)S(0)", "P(sum)P(sum)").fold().fold_count == 1);
  CHECK(request("_S(0,2)S(0)", "_S(0,2)P(sum)").fold().zero_axes == std::vector<int>{1});
  // Other ranks in the same shape keep their axes; another shape has others, and divides.
  CHECK(request("S(0)R", "P(sum)R", "f32", "2x3", "2x3", "6-11").fold().zero_axes ==
        std::vector<int>{0});
  Request across = request("S(0)R", "P(sum)", "f32", "2x3", "4", "6-9");
  CHECK(across.fold().zero_axes.empty());
  CHECK(across.fold().divisor == 4);
  CHECK(across.zero_coordinate(3) == 0);
  // One rank has no others.
  CHECK(request("S(0)R", "P(sum)R", "f32", "1x3").fold().zero_axes.empty());
}

TEST_CASE("what is folded and what is made may be of different operators") {
  Request made = request("RP(sum)", "P(max)S(1)");
  CHECK(made.fold().op == ReduceOp::Sum);
  CHECK(made.fold().fold_count == 3);
  CHECK(made.fold().divisor == 1);
  Request divided = request("P(max)R", "RP(sum)");
  CHECK(divided.fold().op == ReduceOp::Max);
  CHECK(divided.fold().fold_count == 2);
  CHECK(divided.fold().divisor == 3);
  CHECK(request("P(product)R", "RP(avg)").fold().op == ReduceOp::Product);
  CHECK(request("P(bxor)R", "RP(min)", "i8").fold().op == ReduceOp::Bxor);
  CHECK(request("P(avg)R", "P(min)", "f32", "2x3", "4", "6-9").fold().divisor == 2);
  // An axis of one rank has no addends: the value is divided as it is.
  Request alone = request("P(max)R", "RP(sum)", "f32", "1x3");
  CHECK(alone.fold().op == ReduceOp::Sum);
  CHECK(alone.fold().divisor == 3);
}

TEST_CASE("fingerprints tell requests apart by everything but names") {
  CHECK(request("S(0)R", "RR").fingerprint() == request("S(0)R", "RR").fingerprint());
  CHECK(request("S(0)R", "RR", "f32", "dp=2,tp=3").fingerprint() ==
        request("S(0)R", "RR").fingerprint());
  CHECK(request("S(0)R", "RR").fingerprint() != request("RR", "S(0)R").fingerprint());
  CHECK(request("S(0)R", "RR", "f16").fingerprint() !=
        request("S(0)R", "RR", "bf16").fingerprint());
  CHECK(request("S(0)S(0)", "RR").fingerprint() != request("S(0)[1]S(0)[0]", "RR").fingerprint());
  CHECK(request("_S(0,2)R", "RR").fingerprint() != request("_S(0,3)R", "RR").fingerprint());
  CHECK(request("P(sum)R", "RR").fingerprint() != request("P(avg)R", "RR").fingerprint());
}

TEST_CASE("both sides need one shape and dtype") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("2"));
  CHECK_THROWS_WITH(
      Request(parse_layout("4", "f32", mesh, "R"), parse_layout("5", "f32", mesh, "R")),
      Catch::Contains("one shape and dtype"));
  CHECK_THROWS_WITH(
      Request(parse_layout("4", "f32", mesh, "R"), parse_layout("4", "f64", mesh, "R")),
      Catch::Contains("one shape and dtype"));
}
