// SPDX-License-Identifier: BSD-3-Clause
// Which requests run into which known defects of PyTorch.
#include <catch2/catch.hpp>

#include "core/torch/known_defects.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

std::string issues_of(const Request& request) {
  std::string out;
  for (const TorchDefect& defect : torch_known_defects(request, 8))
    out += (out.empty() ? "" : " ") + std::to_string(defect.issue);
  return out;
}

}  // namespace

TEST_CASE("the known defects of PyTorch that a request meets") {
  const struct {
    const char *mesh, *shape, *from, *to, *issues;
  } rows[] = {
      {"4", "8,8", "S0", "R", ""},
      {"4", "7,8", "S0", "S1", ""},
      // What is gathered is cut again.
      {"2x2", "8,8", "S0,S0", "S1,S1", "132751"},
      {"2x2", "8,8", "S0,S0", "S0,S1", ""},
      {"1x2", "8,8", "S0,S0", "R,S0", "132751"},
      {"2x1", "8,8", "S0,S0", "R,S0", ""},
      // Joined gathers of shards that a flat cut would not make.
      {"2x2", "5,3", "S0,S0", "R,R", "194457"},
      {"2x2", "8,3", "S0,S0", "R,R", ""},
      {"2x2", "7,3", "S0,S0", "R,R", ""},
      {"2x2", "5,3", "S0,S0", "S0,R", ""},
      {"2x2", "5,3", "S(0)[1]S(0)[0]", "R,R", ""},
      {"2x1", "5,3", "S0,S0", "R,R", ""},
      // Sums over several axes, one after the other.
      {"2x2", "8", "P,P", "R,R", "171916"},
      {"2x2", "8", "P(max),P(max)", "R,R", ""},
      {"2x2", "8", "P,R", "R,R", ""},
      {"2x1", "8", "P,P", "R,R", ""},
      // Uneven reduce-scatter.
      {"4", "8", "P", "S0", ""},
      {"4", "7", "P", "S0", "191580"},
      {"2x2", "6", "P,P", "S0,S0", "191580"},
      // Uneven strided shards: their meaning; as a shard order that is none.
      {"2", "5", "_S(0,2)", "R", "168134"},
      {"2", "7", "_S(0,2)", "R", ""},
      {"2x2", "8", "_S(0,2)S(0)", "R,R", ""},
      {"3x2", "7", "_S(0,2)S(0)", "R,R", "168134 168134"},
      {"3x2", "7", "_S(0,2)S(0)", "_S(0,2)S(0)", "168134"},
      // Strided shards that stand for no shard order.
      {"2x2", "12", "_S(0,3)S(0)", "R,S0", "178735"},
      {"2x2", "12,2", "_S(0,3)S(1)", "R,S1", ""},
      {"4", "12", "_S(0,3)", "R", ""},
  };
  for (const auto& row : rows) {
    INFO(row.mesh << " " << row.shape << " " << row.from << " -> " << row.to);
    CHECK(issues_of(request_on(row.mesh, row.shape, row.from, row.to)) == row.issues);
  }
}

TEST_CASE("integers are the same in any order of reduction") {
  CHECK(issues_of(request_on("2x2", "8", "P,P", "R,R", "i32")).empty());
}

TEST_CASE("across meshes PyTorch does nothing, so nothing wrong") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("7", "f32", mesh, "S0"), parse_layout("7", "f32", other, "S0,S0"));
  CHECK(issues_of(across).empty());
}

}  // namespace reshard
