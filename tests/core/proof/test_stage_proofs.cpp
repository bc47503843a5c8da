// SPDX-License-Identifier: BSD-3-Clause
// Stages of a plan: what is proved of them, and that a plan in which one rank need not wait is
// refuted.
#include <catch2/catch.hpp>

#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "tests/core/proof/hand_plans.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Three tensors in turn: on ranks 0-3; on ranks 0 and 1; on ranks 1 to 3. Ranks 2 and 3 have no
// part in the second.
Plan in_turn(Stages stages) {
  auto mesh = [](const char* text, const char* ranks) {
    return std::make_shared<const Mesh>(parse_mesh(text, ranks));
  };
  std::vector<Request> requests;
  for (const auto& on : {mesh("4", "0-3"), mesh("2", "0-1"), mesh("3", "1-3")})
    requests.emplace_back(parse_layout("12", "f32", on, "S(0)"),
                          parse_layout("12", "f32", on, "R"));
  std::vector<Plan> plans;
  for (const Stage& stage : stages) {
    std::vector<Request> own;
    for (TensorId tensor : stage.tensors) own.push_back(requests[to_index(tensor)]);
    plans.push_back(plan_p2p(Demand(own), {}));
  }
  std::vector<const Plan*> of_stages;
  for (const Plan& plan : plans) of_stages.push_back(&plan);
  return join_stages(requests, std::move(stages), of_stages, "p2p");
}

const Stages kThree{{{TensorId{0}}, {}}, {{TensorId{1}}, {0}}, {{TensorId{2}}, {1}}};

std::vector<StepId> steps(std::initializer_list<int> list) {
  std::vector<StepId> out;
  for (int step : list) out.push_back(StepId{step});
  return out;
}

}  // namespace

TEST_CASE("a stage's steps come after the stages before, and through those a rank is not in") {
  Plan plan = in_turn(kThree);
  REQUIRE(plan.steps.size() == 6);  // a copy and an exchange each
  CHECK(fault(plan).empty());
  CHECK(stage_of_steps(plan) == IndexVector<StepId, std::int32_t>{0, 0, 1, 1, 2, 2});
  CHECK(plan.steps[1].after.empty());
  CHECK(plan.steps[2].after == steps({0, 1}));
  CHECK(plan.steps[3].after == steps({0, 1}));
  // Rank 1 comes from the second stage, ranks 2 and 3 from the first.
  CHECK(plan.steps[4].after == steps({0, 1, 2, 3}));
  CHECK(plan.steps[5].after == steps({0, 1, 2, 3}));
}

TEST_CASE("a plan in which one rank need not wait for one step is refuted") {
  Plan plan = in_turn(kThree);
  int refuted = 0;
  for (std::size_t step = 0; step < plan.steps.size(); ++step)
    for (StepId before : plan.steps[step].after) {
      Plan broken = plan;
      std::erase(broken.steps[step].after, before);
      CAPTURE(step, static_cast<int>(before));
      CHECK_THAT(fault(broken), Catch::Contains("can start on rank"));
      ++refuted;
    }
  CHECK(refuted == 12);
  Plan broken = plan;
  std::erase(broken.steps[5].after, StepId{1});
  CHECK(fault(broken) ==
        "step 5 (exchange) of stage 2 can start on rank 2 before step 1 of stage 0 is done");
  CHECK(check_plan(broken).refutation->step == StepId{5});
  // Without stages the same steps are right.
  broken.stages.clear();
  CHECK(fault(broken).empty());
}

TEST_CASE("dependencies within a stage count") {
  Plan plan = in_turn(kThree);
  // The exchange waits for the copy, which waits for the first stage.
  plan.steps[3].after = steps({2});
  CHECK(fault(plan).empty());
}

TEST_CASE("stages that are none are refuted") {
  auto fault_of = [](Stages stages) {
    Plan plan = in_turn(kThree);
    plan.stages = std::move(stages);
    return fault(plan);
  };
  TensorId a{0}, b{1}, c{2};
  CHECK(fault_of({{{a}, {}}, {{b}, {0}}}) == "tensor 2 is in no stage");
  CHECK(fault_of({{{a}, {}}, {{}, {0}}, {{b, c}, {1}}}) == "stage 1 has no tensors");
  for (const Stages& wrong :
       {Stages{{{a, b}, {}}, {{b, c}, {}}}, Stages{{{b, a}, {}}, {{c}, {}}},
        Stages{{{a, b}, {}}, {{TensorId{3}}, {}}}, Stages{{{a, b, TensorId{-1}}, {}}, {{c}, {}}}})
    CHECK_THAT(fault_of(wrong), Catch::Contains("does not name tensors of the plan"));
  for (const Stages& wrong :
       {Stages{{{a, b}, {1}}, {{c}, {}}}, Stages{{{a, b}, {0}}, {{c}, {}}},
        Stages{{{a}, {}}, {{b}, {}}, {{c}, {1, 0}}}, Stages{{{a}, {-1}}, {{b, c}, {}}}})
    CHECK_THAT(fault_of(wrong), Catch::Contains("does not come after earlier stages"));
  // The first two tensors are moved by steps of their own.
  CHECK(fault_of({{{a, b}, {}}, {{c}, {0}}}).empty());
  Plan together = plan_p2p(Demand(std::vector<Request>(2, request("12", "2", "S(0)", "R"))), {});
  together.stages = {{{a}, {}}, {{b}, {}}};
  CHECK(fault(together) == "step 0 (copy) works on tensors of stages 0 and 1");
}
