// SPDX-License-Identifier: BSD-3-Clause
// What `graph` makes of the min-cost steps: joined collectives (also on uneven shards), strided
// shards, addends, reasons, and refusals.
#include <catch2/catch.hpp>

#include <cstring>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "sim/machines/presets.h"
#include "sim/store/store.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/rough_data.h"

namespace reshard {
namespace {

Plan graph(const Request& request, Explanation* explanation = nullptr) {
  Topology topology = sim::default_topology(static_cast<std::int32_t>(request.ranks().size()));
  PlannerInput input;
  input.topology = &topology;
  input.explanation = explanation;
  Plan plan = plan_graph(request, input);
  prove(plan);
  CHECK(plan.planner == "graph");
  return plan;
}

std::string kinds(const char* mesh, const char* shape, const char* from, const char* to) {
  return step_kinds(graph(request_on(mesh, shape, from, to)));
}

std::vector<std::string> reasons(const Request& request) {
  Explanation explanation;
  graph(request, &explanation);
  std::vector<std::string> out;
  for (const Explanation::Line& line : explanation.lines()) out.push_back(line.why);
  return out;
}

}  // namespace

TEST_CASE("consecutive collectives over several axes are one") {
  CHECK(kinds("2x2", "8", "S0,S0", "R,R") == "all_gather[0,1]");
  CHECK(kinds("2x2", "8", "P,P", "S0,S0") == "reduce_scatter[0,1]");
  CHECK(kinds("2x3", "8", "P,P(avg)", "R,R") == "all_reduce[0,1]");
  CHECK(kinds("2x2x2", "8,8", "P,S0,P", "R,R,R") == "all_reduce[0,2] all_gather[1]");
  CHECK(kinds("2x2x2", "8", "S0,S0,S0", "R,R,R") == "all_gather[0,1,2]");
  CHECK(kinds("2x1", "8", "S0,S0", "R,R") == "all_gather[0]");
}

TEST_CASE("sum and avg joined divide once, by the axes that average") {
  Plan plan = graph(request_on("2x3", "8", "P,P(avg)", "R,R"));
  const auto& reduce = std::get<CollectiveStep>(plan.steps[0].body);
  CHECK(reduce.op == ReduceOp::Sum);
  CHECK(reduce.divisor == 3);
}

TEST_CASE("a joined all-gather of uneven nested shards loses no row, pytorch #194457") {
  Request request = request_on("2x2", "5,3", "S0,S0", "R,R");
  Plan plan = graph(request);
  CHECK(collectives(plan) == 1);
  // Element (i, j) is 3 i + j; nested local sizes are 2, 1, 1, 1 rows.
  const std::vector<std::vector<float>> shards{
      {0, 1, 2, 3, 4, 5}, {6, 7, 8}, {9, 10, 11}, {12, 13, 14}};
  int taken = 0;
  sim::Store store({.poison = true});
  test::run_once(
      store, plan,
      [&](Rank rank, std::span<std::byte> bytes) {
        const std::vector<float>& shard = shards[static_cast<std::size_t>(to_int(rank))];
        REQUIRE(bytes.size() == shard.size() * sizeof(float));
        std::memcpy(bytes.data(), shard.data(), bytes.size());
      },
      [&](Rank, std::span<const std::byte> bytes) {
        std::vector<float> whole(15);
        REQUIRE(bytes.size() == whole.size() * sizeof(float));
        std::memcpy(whole.data(), bytes.data(), bytes.size());
        for (std::size_t i = 0; i < whole.size(); ++i) CHECK(whole[i] == static_cast<float>(i));
        ++taken;
      });
  CHECK(taken == 4);
}

TEST_CASE("an uneven reduce-scatter is done axis by axis, as in PyTorch") {
  CHECK(kinds("2x3", "4", "P,P", "S0,S0") == "reduce_scatter[0] copy fill reduce_scatter[1] copy");
}

TEST_CASE("a strided shard that is a shard order takes that order's way") {
  CHECK(kinds("2x2", "8", "_S(0,2)S(0)", "R,S0") == "all_gather[0]");
  // Two names of one layout.
  CHECK(kinds("2x2", "8", "_S(0,2)S(0)", "S(0)[1]S(0)[0]") == "copy");
  // Greedily, where the order is not what ranks hold, and where there is none.
  Request uneven = request_on("3x2", "7", "_S(0,2)S(0)", "R,R");
  CHECK(graph(uneven).steps == plan_rule(uneven, {}).steps);
  CHECK_THAT(reasons(uneven).at(0), Catch::Contains("not what ranks hold"));
  Request none = request_on("2x2", "12", "_S(0,3)S(0)", "R,S0");
  CHECK(graph(none).steps == plan_rule(none, {}).steps);
  CHECK_THAT(reasons(none).at(0), Catch::Contains("no shard order"));
}

TEST_CASE("addends are those that the request asks for") {
  Request request = request_on("2x8", "8192,8192", "R,S0", "P,R");
  CHECK(step_kinds(graph(request)) == "reduce all_gather[1]");
  CHECK_THAT(reasons(request).at(0), Catch::Contains("different addends"));
  CHECK(kinds("2x2", "8,8", "S0,S0", "P,S0") == "all_gather[1] copy fill copy");
}

TEST_CASE("reasons name the change of every axis") {
  CHECK(
      reasons(request_on("2x2", "8192,8192", "S0,S0", "R,S0")) ==
      std::vector<std::string>{"packs the blocks of the collective that follows",
                               "axis 1: S(0) -> S(1), on the path of least cost by PyTorch's model",
                               "axis 0: S(0) -> R, as in the destination",
                               "axis 1: S(1) -> S(0), as in the destination",
                               "unpacks the collective's result without its padding"});
  CHECK(reasons(request_on("2x2", "8", "S0,S0", "R,R")) ==
        std::vector<std::string>{
            "axes 1, 0: S(0) -> R, a single collective over them, as in the destination"});
  CHECK(reasons(request_on("2x2", "8", "P,P(avg)", "R,R")) ==
        std::vector<std::string>{"axes 0: P(sum) -> R, 1: P(avg) -> R, a single collective over "
                                 "them, as in the destination"});
}

TEST_CASE("graph refuses two meshes and a search without end") {
  auto message_of = [](const Request& request) -> std::string {
    try {
      graph(request);
    } catch (const InputError& error) {
      return error.what();
    }
    return {};
  };
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"));
  CHECK_THAT(message_of(across), Catch::Contains("one mesh") && Catch::Contains("p2p"));
  CHECK_THAT(message_of(request_on("2x2x2x2x2", "2,2,2,2,2,2,2,2", "P,S0,S0,S0,S0", "R,R,R,R,R")),
             Catch::Contains("at most 131072 layouts") && Catch::Contains("8 dims on 5 axes"));
}

}  // namespace reshard
