// SPDX-License-Identifier: BSD-3-Clause
// Which indices of a dim have values on which ranks: the numbers are those that PyTorch 2.15
// leaves.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/layout/zero_axes.h"

namespace reshard {
namespace {

Request request_of(const char* shape, const char* mesh, const char* from, const char* to) {
  auto ref = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout(shape, "f32", ref, from), parse_layout(shape, "f32", ref, to));
}

// "0-2 3-4": what each rank has of dim 0, rank after rank.
std::string valued(const char* shape, const char* mesh, const char* from, const char* to,
                   int dim = 0) {
  Request request = request_of(shape, mesh, from, to);
  ZeroAxes zero_axes(request);
  std::string out;
  for (std::int32_t p = 0; p < request.source().mesh().size(); ++p) {
    out += p == 0 ? "" : " | ";
    MeshCoordinate at = request.source().mesh().coordinate(p);
    for (const Run& run : zero_axes.runs(dim, zero_axes.share_of(dim, at)))
      out += fmt::format("{}:{},", run.global_lo, run.global_hi());
  }
  return out;
}

}  // namespace

TEST_CASE("a rank has the values that its coordinates own in the source") {
  CHECK(valued("5", "2x2", "S(0)R", "P(sum)R") == "0:3, | 0:3, | 3:5, | 3:5,");
  CHECK(valued("5", "2x2", "S(0)S(0)", "P(sum)P(sum)") == "0:2, | 2:3, | 3:4, | 4:5,");
  CHECK(valued("5", "2x2", "S(0)S(0)", "P(sum)S(0)") == "0:3, | 0:3, | 3:5, | 3:5,");
  CHECK(valued("5", "2x2", "S(0)S(0)", "RP(sum)") == "0:2,3:4, | 2:3,4:5, | 0:2,3:4, | 2:3,4:5,");
  CHECK(valued("5", "2x2", "S(0)[1]S(0)[0]", "RP(sum)") == "0:3, | 3:5, | 0:3, | 3:5,");
  CHECK(valued("5", "2x2", "_S(0,2)S(0)", "RP(sum)") == "0:3, | 3:5, | 0:3, | 3:5,");
  CHECK(valued("1", "3", "S(0)", "P(sum)") == "0:1, |  | ");
  CHECK(valued("5,4", "2x2", "S(0)S(1)", "P(sum)P(sum)", 1) == "0:2, | 2:4, | 0:2, | 2:4,");
  CHECK(valued("5,4", "2x2", "S(0)S(1)", "P(sum)S(0)", 1) == "0:4, | 0:4, | 0:4, | 0:4,");
}

TEST_CASE("values of a box are counted dim by dim, after dims that the tensor does not have") {
  Request request = request_of("5,4", "2x2", "S(0)S(1)", "P(sum)P(sum)");
  ZeroAxes zero_axes(request);
  CHECK(!zero_axes.none());
  MeshCoordinate second{0, 1};  // [0:3,2:4]
  CHECK(zero_axes.values_in({{0, 0}, {5, 4}}, second) == 6);
  CHECK(zero_axes.values_in({{2, 1}, {4, 3}}, second) == 1);
  CHECK(zero_axes.values_in({{3, 2}, {5, 4}}, second) == 0);
  CHECK(zero_axes.values_in({{0, 0, 2}, {1, 3, 4}}, second) == 6);
  CHECK(zero_axes.share_of_piece(0, 1) == 1);

  ZeroAxes none(request_of("5", "2", "S(0)", "R"));
  CHECK(none.none());
  CHECK(none.values_in({{1}, {5}}, {1}) == 4);
  CHECK(ZeroAxes(request_of("", "2", "R", "R")).share_count(0) == 1);
}

}  // namespace reshard
