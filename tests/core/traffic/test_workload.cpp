// SPDX-License-Identifier: BSD-3-Clause
#include "core/traffic/workload.h"

#include <catch2/catch.hpp>

using namespace reshard;

TEST_CASE("a workload of one plan is one operation on the plan's ranks") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({2}, Rank{3}));
  Request request(parse_layout("4", "f32", mesh, "S(0)"), parse_layout("4", "f32", mesh, "R"));
  Workload workload = workload_of(std::make_shared<const Plan>(request, "rule"));
  REQUIRE(workload.operations.size() == 1);
  CHECK(ranks_of(workload.operations[0]) == std::vector<Rank>{Rank{3}, Rank{4}});
  CHECK(text(workload.operations[0]) == "rule plan on ranks 3-4");
  CHECK(workload.operations[0].stream == 0);
}

TEST_CASE("operations name their ranks for people") {
  std::vector<Rank> six{Rank{5}, Rank{4}, Rank{3}, Rank{2}, Rank{1}, Rank{0}};
  CHECK(text(Operation{Compute{{Rank{7}}, 1}, 0, {}}) == "compute on rank 7");
  CHECK(
      text(Operation{BareCollective{CollectiveKind::AllReduce, Algorithm::Ring, six, 1}, 0, {}}) ==
      "all_reduce on ranks 5,4,3,2,1,0");
  std::vector<Rank> scattered;
  for (std::int32_t i = 0; i < 30; ++i) scattered.push_back(Rank{2 * i});
  CHECK(text(Operation{Compute{scattered, 1}, 0, {}}) ==
        "compute on ranks 0,2,4,6,.. (30 in total)");
  // A list of up to 40 characters is written out.
  std::vector<Rank> even;
  for (std::int32_t i = 5; i < 17; ++i) even.push_back(Rank{2 * i});
  even.push_back(Rank{1000});
  CHECK(text(Operation{Compute{even, 1}, 0, {}}) ==
        "compute on ranks 10,12,14,16,18,20,22,24,26,28,30,32,1000");
  even.back() = Rank{10000};
  CHECK(text(Operation{Compute{even, 1}, 0, {}}) ==
        "compute on ranks 10,12,14,16,.. (13 in total)");
  CHECK(text(Operation{PointToPoint{Rank{1}, Rank{2}, 8}, 0, {}}) ==
        "message from rank 1 to rank 2");
  CHECK(ranks_of(Operation{PointToPoint{Rank{2}, Rank{1}, 8}, 0, {}}) ==
        std::vector<Rank>{Rank{2}, Rank{1}});
}
