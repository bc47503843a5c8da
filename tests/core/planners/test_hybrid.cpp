// SPDX-License-Identifier: BSD-3-Clause
// Which requests `hybrid` does with one collective, with which local steps before and after it, and
// which it leaves to p2p.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/traffic/accounting.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard {
namespace {

// Steps of the hybrid plan, or "p2p" where it is p2p's.
std::string choice(const Request& request) {
  Explanation explanation;
  PlannerInput input;
  input.explanation = &explanation;
  Plan plan = plan_hybrid(request, input);
  prove(plan);
  CHECK(plan.planner == "hybrid");
  REQUIRE(!explanation.lines().empty());
  bool direct = explanation.lines()[0].why.find("takes p2p") != std::string::npos;
  if (direct) CHECK(plan.steps == plan_p2p(request, {}).steps);
  return direct ? "p2p" : step_kinds(plan);
}

struct Row {
  const char *mesh, *shape, *from, *to, *steps;
};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    INFO(row.mesh << " [" << row.shape << "] " << row.from << " -> " << row.to);
    CHECK(choice(request_on(row.mesh, row.shape, row.from, row.to)) == row.steps);
  }
}

}  // namespace

TEST_CASE("one collective over one axis") {
  check({
      {"4", "8,8", "S0", "R", "all_gather[0]"},
      {"4", "8,8", "S1", "R", "all_gather[0] copy"},
      {"4", "7", "S0", "R", "copy fill all_gather[0] copy"},
      {"4", "8,8", "P", "R", "all_reduce[0]"},
      {"4", "8,8", "P", "S0", "reduce_scatter[0]"},
      {"4", "8,8", "P(max)", "S1", "copy reduce_scatter[0]"},
      {"4", "8,8", "S0", "S1", "copy all_to_all[0]"},
      {"4", "8", "P", "_S(0,2)", "copy reduce_scatter[0]"},
      {"2", "8", "_S(0,2)", "R", "all_gather[0] copy"},
      {"2", "8,8", "_S(0,2)", "S1", "copy all_to_all[0] copy"},
      {"2x2", "8,8", "P,S1", "S0,S1", "reduce_scatter[0]"},
      {"2x2", "8,8", "S0,S1", "R,S1", "all_gather[0]"},
      {"2x2", "8,8", "S0,P", "S0,P", "copy"},
      {"2x2", "8,8", "S0,P", "R,P", "all_gather[0]"},
  });
}

TEST_CASE("one collective over adjacent axes") {
  check({
      {"2x2", "8,8", "S0,S0", "R,R", "all_gather[0,1]"},
      {"2x2", "8,8", "S0,S1", "R,R", "all_gather[0,1] copy"},
      {"2x2", "8,8", "P,P", "R,R", "all_reduce[0,1]"},
      {"2x2", "8,8", "P(avg),P", "R,R", "all_reduce[0,1]"},
      {"2x2", "8,8", "P,P", "S0,S0", "reduce_scatter[0,1]"},
      {"2x2", "8,8", "S0,S0", "S1,S1", "copy all_to_all[0,1]"},
      {"2x2", "8,8,8,8", "S0,S1", "S2,S3", "copy all_to_all[0,1] copy"},
      {"2x2", "8", "S(0)[1]S(0)[0]", "RR", "all_gather[0,1] copy"},
      {"2x1x2", "8,8", "S0,R,S0", "R,R,R", "all_gather[0,2]"},
      {"2x1x2", "8,8", "S0,S0,S0", "R,S1,R", "all_gather[0,2]"},
      {"2x2x2", "8,8", "S1,S0,S0", "S1,R,R", "all_gather[1,2]"},
  });
  Plan plan = plan_hybrid(request_on("2x3", "8", "P(avg),P", "R,R"), {});
  CHECK(std::get<CollectiveStep>(plan.steps[0].body).divisor == 2);
}

TEST_CASE("an fsdp shard above a tensor-parallel shard is gathered over its own axis") {
  check({
      {"2x2", "8,8", "_S(0,2)S(0)", "R,S0", "all_gather[0]"},
      {"2x4", "64,8", "_S(0,4)S(0)", "R,S0", "all_gather[0]"},
      {"4x2", "32,8", "S(0)[1]S(0)[0]", "R,S0", "all_gather[0]"},
      {"2x4", "64,8", "S0,S1", "R,S1", "all_gather[0]"},
      {"2x4", "64,8", "R,S0", "_S(0,4)S(0)", "copy"},
      {"2x4", "64,8", "_S(0,4)S(0)", "S(0)[1]S(0)[0]", "copy"},
  });
}

TEST_CASE("local steps go before the collective where that is possible, else after it") {
  check({
      {"2x2", "8,8", "S0,R", "R,S1", "copy all_gather[0]"},
      {"2x2", "8,8", "S0,R", "R,S0", "all_gather[0] copy"},
      {"2x2", "8,8", "P,R", "R,S0", "copy all_reduce[0]"},
      {"2x2", "8,8", "P,R", "S0,S1", "copy reduce_scatter[0]"},
      {"2x2", "8,8", "P,R", "S0,S0", "reduce_scatter[0] copy"},
      {"2x2", "8,8", "S0,R", "S1,S0", "copy all_to_all[0] copy"},
      {"2x2", "8,8", "R,P", "P,R", "all_reduce[1] reduce"},
      {"2x2", "8,8", "S0,R", "R,P", "reduce all_gather[0]"},
      {"2x2x2", "8,8", "R,S0,R", "S1,R,S1", "copy all_gather[1]"},
      {"2x2x2", "8,8", "R,S0,R", "S0,R,S1", "copy all_gather[1] copy"},
  });
}

TEST_CASE("zeros of S -> P(sum) are left to p2p") {
  check({
      {"4", "8,8", "S0", "P", "p2p"},
      {"2x2", "8,8", "S0,S1", "P,R", "p2p"},
      {"2x2", "8,8", "P,S0", "R,P", "p2p"},
      {"1x4", "8,8", "S0,S0", "P,R", "all_gather[1]"},
  });
}

TEST_CASE("local steps alone") {
  check({
      {"2x2", "8,8", "R,R", "S0,S1", "copy"},
      {"2x2", "8,8", "S0,R", "S0,S0", "copy"},
      {"2x2", "8,8", "R,R", "P,S0", "copy reduce"},
      {"2x2", "8,8", "R,R", "R,R", "copy"},
      {"1x1", "8,8", "S0,P", "P(max),S1", "copy"},
      {"4", "0", "S0", "R", ""},
  });
}

TEST_CASE("everything else is left to p2p") {
  check({
      {"2x2", "8,8", "S0,S1", "S1,S0", "p2p"},  // a dim both gathered and cut
      {"2x2", "8,8", "S0,S0", "S1,S0", "p2p"},  // what stays lies deeper than before
      {"2x2", "8,8", "S0,S0", "R,S0", "p2p"},   // the same
      {"2x2", "8,8", "R,S0", "S0,S0",
       "p2p"},  // no axis communicates by its name, but ranks need what others hold
      {"2x2", "8", "S(0)[0]S(0)[1]", "S(0)[1]S(0)[0]", "p2p"},  // the same
      {"2x2", "8,8", "P,S0", "S0,R", "p2p"},                    // two different collectives
      {"2x2", "8,8", "P,P", "R,S0", "p2p"},                     // the same
      {"2x2x2", "8,8", "S0,R,S0", "R,R,R", "p2p"},              // not adjacent
      {"2", "9", "S0", "_S(0,2)", "p2p"},                       // the same dim on both sides
  });
}

TEST_CASE("an uneven strided shard is p2p's where it is no shard order") {
  // (3,2), 7 rows: [_S(0,2), S0] and order (1,0) differ, so gathering axis 0 alone does not give
  // R,S0.
  CHECK(choice(request_on("3x2", "12", "_S(0,2)S(0)", "R,S0")) == "all_gather[0]");
  CHECK(choice(request_on("3x2", "7", "_S(0,2)S(0)", "R,S0")) == "p2p");
}

TEST_CASE("hybrid says why") {
  auto lines = [](const Request& request) {
    Explanation explanation;
    PlannerInput input;
    input.explanation = &explanation;
    plan_hybrid(request, input);
    std::string out;
    for (const Explanation::Line& line : explanation.lines())
      out +=
          (line.step ? std::to_string(static_cast<int>(*line.step)) : "-") + ' ' + line.why + '\n';
    return out;
  };
  CHECK(lines(request_on("2x2", "8,8", "S0,R", "R,S1")) ==
        "- hybrid: one collective is enough\n"
        "0 axis 1: R -> S(1): sharded here, before anything moves\n"
        "1 axis 0: S(0) -> R: one collective does all that needs communication\n");
  CHECK(lines(request_on("4x1", "8,8", "S0,P", "S0,S1")) ==
        "- hybrid: local steps are enough\n"
        "- every rank now holds its destination (only the label changes)\n"
        "0 every rank already holds what it needs: the source becomes the destination\n");
  CHECK_THAT(
      lines(request_on("2x2x2", "8,8", "S0,R,S0", "R,R,R")),
      Catch::StartsWith("- hybrid takes p2p: the axes that need communication are not adjacent\n"));
}

TEST_CASE("hybrid refuses two meshes and says who does not") {
  auto mesh = std::make_shared<const Mesh>(parse_mesh("4")),
       other = std::make_shared<const Mesh>(parse_mesh("2x2"));
  Request across(parse_layout("8", "f32", mesh, "S0"), parse_layout("8", "f32", other, "S0,R"));
  CHECK_THROWS_WITH(made_by(find_planner("hybrid"), across, {}),
                    Catch::Contains("hybrid") && Catch::Contains("p2p"));
}

TEST_CASE("hybrid gathers over 65,536 ranks without looking at pairs") {
  Plan plan = plan_hybrid(request_on("1024x64", "65536", "S0,S0", "R,R"), {});
  CHECK(step_kinds(plan) == "all_gather[0,1]");
}

}  // namespace reshard
