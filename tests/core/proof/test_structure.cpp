// SPDX-License-Identifier: BSD-3-Clause
// What a step may consist of: which part is wrong, and what is right although it looks odd.
#include <catch2/catch.hpp>

#include <limits>

#include "tests/core/proof/hand_plans.h"

using namespace reshard;
using namespace reshard::test;

namespace {

std::optional<std::size_t> wrong_part(const Plan& plan) {
  ProofResult result = check_plan(plan);
  REQUIRE(result.refutation);
  return result.refutation->part;
}

}  // namespace

TEST_CASE("what is wrong is named down to a rank's part, a message or a group") {
  Plan plan(request("4", "4", "P(sum)", "R"), "hand");
  CollectiveStep reduce{};
  reduce.kind = CollectiveKind::AllReduce;
  reduce.divisor = 1;
  reduce.input = kSourceBuffer;
  reduce.output = plan.add_temporary();
  reduce.group_size = 2;
  reduce.members = {0, 1, 2, 3};
  for (Slot slot : {0, 1, 2, 3}) plan.buffer(reduce.output).set_shape(slot, {4});
  plan.add_step(reduce, {}, {0});
  SECTION("a group whose buffers differ") {
    plan.buffer(reduce.output).set_shape(3, {5});
    CHECK_THAT(fault(plan), Catch::Contains("different shapes on ranks 2 and 3"));
    CHECK(wrong_part(plan) == 1U);
  }
  SECTION("a group with a member that writes what another step has written") {
    FillStep fill;
    fill.parts.push_back({3, reduce.output, Box{{1}, {2}}});
    plan.steps.clear();
    plan.add_step(fill, {});
    plan.add_step(reduce, {StepId{0}}, {0});
    CHECK_THAT(fault(plan), Catch::Contains("writes [1:2] of buffer 2 on rank 3"));
    CHECK(wrong_part(plan) == 1U);
  }
  SECTION("the second of a step's copies, fills, messages") {
    plan = Plan(request("4", "2", "R", "R"), "hand");
    CopyStep copy;
    FillStep fill;
    ExchangeStep exchange;
    for (Slot slot : {0, 1}) {
      MoveRange range{static_cast<std::uint32_t>(slot), 1};
      std::int64_t lo = slot == 0 ? 0 : 1;  // of 4 elements: beyond the buffer by one
      copy.parts.push_back({slot, range});
      copy.moves.push_back({kSourceBuffer, kDestinationBuffer, {lo}, {0}, {4}});
      fill.parts.push_back({slot, kDestinationBuffer, Box{{lo}, {lo + 4}}});
      exchange.messages.push_back({slot, 1 - slot, range});
      exchange.moves.push_back({kSourceBuffer, kDestinationBuffer, {0}, {lo}, {4}});
    }
    for (const StepBody& body : {StepBody(copy), StepBody(fill), StepBody(exchange)}) {
      plan.steps.clear();
      plan.add_step(body, {});
      CHECK_THAT(fault(plan), Catch::Contains("outside buffer"));
      CHECK(wrong_part(plan) == 1U);
    }
  }
  SECTION("a part that lies outside, and operands of none") {
    plan = folded();
    reduce_of(plan).operands[3].lo = {1};
    CHECK(wrong_part(plan) == 1U);
    plan = folded();
    reduce_of(plan).operands.push_back(reduce_of(plan).operands[0]);
    CHECK_THAT(fault(plan), Catch::Contains("operands that belong to no fold"));
    CHECK(wrong_part(plan) == std::nullopt);
  }
}

TEST_CASE("a rank far outside the plan is refused before anything of it is looked up") {
  for (Slot slot : {-1, std::numeric_limits<Slot>::min(), std::numeric_limits<Slot>::max()}) {
    Plan plan = gather();
    collective(plan).members = {0, slot};
    CHECK_THAT(fault(plan), Catch::Contains("not in the plan"));
    plan = folded();
    reduce_of(plan).parts[1].slot = slot;
    CHECK_THAT(fault(plan), Catch::Contains("not in the plan"));
  }
}

TEST_CASE("a fold of one operand is a copy, whatever the operator and the dtype") {
  Plan plan(request("4", "2", "R", "R", "c64"), "hand");
  ReduceStep copy;
  copy.op = ReduceOp::Max;
  for (Slot slot : {0, 1}) {
    copy.parts.push_back({slot, kDestinationBuffer, {0}, {4}, static_cast<std::uint32_t>(slot), 1});
    copy.operands.push_back({kSourceBuffer, {0}});
  }
  plan.add_step(copy, {});
  CHECK(fault(plan).empty());
  std::get<ReduceStep>(plan.steps[0].body).divisor = 2;
  CHECK_THAT(fault(plan), Catch::Contains("which c64 does not support"));
}
