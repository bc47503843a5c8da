// SPDX-License-Identifier: BSD-3-Clause
// `auto` with times that the test makes up, the registry, and memory limits.
#include <fmt/core.h>
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/topology/topology_text.h"
#include "core/traffic/accounting.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

Topology switch_of_eight() {
  return build_topology(
      parse_topology("reshard-topology 1\nname test\ndevices 8\ncount nothing\nport link 1GB/s\n"
                     "route within via link.out link.in latency 1us transport nvlink\n",
                     "test.topo"),
      std::nullopt);
}

// A machine on which every step costs one picosecond, or one on which every byte does.
std::int64_t steps_time(const Plan& plan, const Topology&, std::int64_t) {
  return static_cast<std::int64_t>(plan.steps.size());
}
std::int64_t bytes_time(const Plan& plan, const Topology&, std::int64_t) {
  return count_bytes(plan).received_total;
}

}  // namespace

TEST_CASE("auto takes the least time, ties by peak and then by the registry") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;

  input.plan_time = steps_time;
  Request transpose = request_on("2x2", "8,8", "S0,S1", "S1,S0");
  CHECK(plan_auto(transpose, input).planner == "p2p");
  // One step each: rule's and hybrid's are the same plan, and p2p's peak is the same; rule stands
  // first.
  Request gather = request_on("4", "8,8", "S0", "R");
  CHECK(step_kinds(plan_auto(gather, input)) == "all_gather[0]");
  CHECK(plan_auto(gather, input).planner == "rule");

  input.plan_time = [](const Plan& plan, const Topology&, std::int64_t) {
    return std::int64_t{plan.planner == "hybrid" ? 1 : 2};
  };
  CHECK(plan_auto(request_on("2x2", "6,8", "P,P", "S0,S0"), input).planner == "hybrid");
  input.plan_time = bytes_time;
  CHECK(plan_auto(request_on("2x2", "8,8", "S0,S0", "R,S0"), input).planner == "p2p");
}

TEST_CASE("auto times plans that two planners agree on once") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;
  int timed = 0;
  input.plan_time = [&](const Plan& plan, const Topology&, std::int64_t) {
    // packed times plans of its own.
    return std::int64_t{plan.planner == "packed" ? 100 : ++timed};
  };
  plan_auto(request_on("4", "8,8", "S1", "R"), input);
  CHECK(timed == 2);
}

TEST_CASE("auto times plans no further than the best, but where it explains") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;
  std::vector<std::int64_t> limits;
  input.plan_time = [&](const Plan& plan, const Topology&, std::int64_t limit_ps) {
    if (plan.planner != "packed") limits.push_back(limit_ps);
    return std::int64_t{plan.planner == "p2p" ? 5 : 7};
  };
  Request request = request_on("2x2", "8,8", "S0,S1", "S1,S0");
  plan_auto(request, input);
  CHECK(limits == std::vector<std::int64_t>{kNoTimeLimit, 5, 5});
  Explanation explanation;
  input.explanation = &explanation;
  limits.clear();
  plan_auto(request, input);
  CHECK(limits == std::vector<std::int64_t>(3, kNoTimeLimit));
}

TEST_CASE("auto skips planners that do not do the request") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;
  input.plan_time = steps_time;
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"));
  CHECK(plan_auto(across, input).planner == "p2p");
}

TEST_CASE("auto keeps to the memory limit or says the least that would do") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;
  Request request = request_on("2x2", "8,8", "S0,S1", "S1,S0");
  std::int64_t rule_peak = count_bytes(plan_rule(request, input)).peak_max,
               p2p_peak = count_bytes(plan_p2p(request, input)).peak_max;
  REQUIRE(p2p_peak < rule_peak);
  input.plan_time = [](const Plan& plan, const Topology&, std::int64_t) {
    return std::int64_t{plan.planner == "rule" ? 1 : 2};
  };
  input.memory.limit_bytes = rule_peak;
  CHECK(plan_auto(request, input).planner == "rule");
  input.memory.limit_bytes = rule_peak - 1;
  CHECK(plan_auto(request, input).planner == "p2p");
  input.memory.limit_bytes = p2p_peak - 1;
  CHECK_THROWS_AS(plan_auto(request, input), InputError);
  CHECK_THROWS_WITH(plan_auto(request, input),
                    Catch::Contains(std::to_string(p2p_peak)) && Catch::Contains("p2p"));
}

TEST_CASE("auto explains all candidates") {
  Topology topology = switch_of_eight();
  Explanation explanation;
  PlannerInput input;
  input.topology = &topology;
  input.plan_time = steps_time;
  input.explanation = &explanation;
  plan_auto(request_on("2x2", "8,8", "S0,S1", "S1,S0"), input);
  std::string all;
  for (const Explanation::Line& line : explanation.lines()) all += line.why;
  CHECK_THAT(all, Catch::Contains("rule takes") && Catch::Contains("hybrid takes") &&
                      Catch::Contains("auto takes p2p"));
}

TEST_CASE("auto without a way to time plans is our mistake") {
  Topology topology = switch_of_eight();
  PlannerInput input;
  input.topology = &topology;
  CHECK_THROWS_AS(plan_auto(request_on("4", "8", "S0", "R"), input), CheckFailure);
}

TEST_CASE("planners are found by name") {
  std::string names;
  for (const PlannerRow& row : planners()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    CHECK(!row.purpose.empty());
    CHECK(&find_planner(row.name) == &row);
  }
  CHECK_THROWS_AS(find_planner("fast"), InputError);
  CHECK_THROWS_WITH(find_planner("fast"), "planner: expected one of " + names + ", found 'fast'");
}

TEST_CASE("make_plan refuses a plan over the memory limit and says its peak") {
  Request request = request_on("4", "8,8", "S0", "R");
  PlannerInput input;
  // 64 bytes of source, 256 of destination.
  input.memory.limit_bytes = 320;
  CHECK(make_plan(find_planner("rule"), request, input).planner == "rule");
  input.memory.limit_bytes = 319;
  CHECK_THROWS_AS(make_plan(find_planner("rule"), request, input), InputError);
  CHECK_THROWS_WITH(make_plan(find_planner("rule"), request, input),
                    Catch::Contains("320") && Catch::Contains("319"));
}

}  // namespace reshard
