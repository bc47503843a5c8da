// SPDX-License-Identifier: BSD-3-Clause
// A proof is worth what it refutes: correct plans are broken in one place each, and every fault
// must be found.
#include <catch2/catch.hpp>

#include "core/planners/planner.h"
#include "tests/core/proof/hand_plans.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// P -> S(0) on two ranks with 3 elements: pad to 4 through temporary 2, reduce_scatter to temporary
// 3, trim.
Plan padded_reduce_scatter() {
  Plan plan(request("3", "2", "P(sum)", "S(0)"), "hand");
  BufferId in = plan.add_temporary(), out = plan.add_temporary();
  CopyStep pack, trim;
  FillStep fill;
  for (Slot slot : {0, 1}) {
    plan.buffer(in).set_shape(slot, {4});
    plan.buffer(out).set_shape(slot, {2});
    pack.parts.push_back({slot, {static_cast<std::uint32_t>(slot), 1}});
    pack.moves.push_back({kSourceBuffer, in, {0}, {0}, {3}});
    fill.parts.push_back({slot, in, Box{{3}, {4}}});
    trim.parts.push_back({slot, {static_cast<std::uint32_t>(slot), 1}});
    trim.moves.push_back({out, kDestinationBuffer, {0}, {0}, {slot == 0 ? 2 : 1}});
  }
  CollectiveStep scatter{};
  scatter.kind = CollectiveKind::ReduceScatter;
  scatter.divisor = 1;
  scatter.input = in;
  scatter.output = out;
  scatter.group_size = 2;
  scatter.members = {0, 1};
  StepId a = plan.add_step(pack, {}), b = plan.add_step(fill, {}),
         c = plan.add_step(scatter, {a, b}, {0});
  plan.add_step(trim, {c});
  return plan;
}

// S(0) -> P(sum) on two ranks with 4 elements, the values of rank 0 and the zeros of rank 1 in one
// half and the others in the other.
Plan zeros(std::int64_t half = 0) {
  Plan plan(request("4", "2", "S(0)", "P(sum)"), "hand");
  CopyStep copy;
  FillStep fill;
  for (Slot slot : {0, 1}) {
    copy.parts.push_back({slot, {static_cast<std::uint32_t>(slot), 1}});
    copy.moves.push_back(
        {kSourceBuffer, kDestinationBuffer, {0}, {slot == 0 ? half : 2 - half}, {2}});
    std::int64_t rest = slot == 0 ? 2 - half : half;
    fill.parts.push_back({slot, kDestinationBuffer, Box{{rest}, {rest + 2}}});
  }
  plan.add_step(copy, {});
  plan.add_step(fill, {});
  return plan;
}

// The same, but what rank 0 must hold is gathered into both destinations.
Plan shared_zeros() {
  Plan plan(request("4", "2", "S(0)", "P(sum)"), "hand");
  BufferId half = plan.add_temporary();
  for (Slot slot : {0, 1}) plan.buffer(half).set_shape(slot, {2});
  CopyStep copy;
  copy.parts.push_back({0, {0, 1}});
  copy.moves.push_back({kSourceBuffer, half, {0}, {0}, {2}});
  FillStep fill;
  fill.parts.push_back({1, half, Box{{0}, {2}}});
  CollectiveStep gather{};
  gather.kind = CollectiveKind::AllGather;
  gather.input = half;
  gather.output = kDestinationBuffer;
  gather.group_size = 2;
  gather.members = {0, 1};
  StepId a = plan.add_step(copy, {}), b = plan.add_step(fill, {});
  plan.add_step(gather, {a, b});
  return plan;
}

}  // namespace

TEST_CASE("zeros are demanded where S -> P(sum) leaves them, and only there") {
  Plan plan = zeros();
  CHECK(fault(plan).empty());
  SECTION("a value where zero is due") {
    plan = Plan(request("4", "2", "S(0)", "P(sum)"), "hand");
    plan.steps = gather().steps;
    CHECK_THAT(fault(plan), Catch::Contains("[2:4] of the destination on rank 0 is not zero"));
  }
  SECTION("zero where a value is due") {
    plan.steps.erase(plan.steps.begin());
    for (FillStep::SlotFill& part : std::get<FillStep>(plan.steps[0].body).parts)
      part.box = Box{{0}, {4}};
    CHECK_THAT(fault(plan), Catch::Contains("padding reaches [0:4] of the destination on rank 0"));
  }
  SECTION("each other's halves") {
    CHECK_THAT(fault(zeros(2)), Catch::Contains("of the destination on rank 0 is not zero") ||
                                    Catch::Contains("padding reaches [0:2]"));
  }
  SECTION("nothing filled") {
    plan.steps.pop_back();
    CHECK_THAT(fault(plan), Catch::Contains("2 elements of the destination on rank 0 are never"));
  }
  SECTION("right on one of the ranks that share it") {
    CHECK_THAT(fault(shared_zeros()),
               Catch::Contains("padding reaches [2:4] of the destination on rank 1") ||
                   Catch::Contains("[0:2] of the destination on rank 1 is not zero"));
  }
}

TEST_CASE("right plans by hand are proved") {
  CHECK(fault(gather()).empty());
  CHECK(fault(padded_reduce_scatter()).empty());
  CHECK(fault(folded()).empty());
}

TEST_CASE("padding that travels is counted") {
  ProofResult result = check_plan(padded_reduce_scatter());
  // The block of rank 1 has one padding element of 4 bytes, which the ring carries n - 1 = 1 times.
  CHECK(result.padding_bytes == std::vector<std::int64_t>{0, 0, 4, 0});
}

TEST_CASE("wrong collectives are refuted") {
  Plan plan = gather();
  SECTION("members in the wrong order") {
    collective(plan).members = {1, 0};
    CHECK_THAT(fault(plan), Catch::Contains("holds the elements at [2:4] instead of [0:2]"));
  }
  SECTION("a rank twice") {
    collective(plan).members = {0, 0};
    CHECK_THAT(fault(plan), Catch::Contains("names rank 0 twice"));
  }
  SECTION("a rank that does not exist") {
    collective(plan).members = {0, 2};
    CHECK_THAT(fault(plan), Catch::Contains("not in the plan"));
  }
  SECTION("groups that do not divide") {
    collective(plan).members = {0, 1, 1};
    CHECK_THAT(fault(plan), Catch::Contains("groups"));
  }
  SECTION("blocks that do not fit") {
    collective(plan).kind = CollectiveKind::AllReduce;
    CHECK_THAT(fault(plan), Catch::Contains("blocks of shape (2) in its input and (4)"));
  }
  SECTION("run twice") {
    plan.add_step(plan.steps[0].body, {StepId{0}});
    CHECK_THAT(fault(plan), Catch::Contains("which step 0 writes too"));
  }
  SECTION("a buffer that does not exist") {
    collective(plan).input = BufferId{5};
    CHECK_THAT(fault(plan), Catch::Contains("buffer 5"));
  }
  SECTION("nothing done") {
    plan.steps.clear();
    CHECK_THAT(fault(plan),
               Catch::Contains("4 elements of the destination on rank 0 are never written"));
  }
}

TEST_CASE("padding, order and coverage faults are refuted") {
  Plan plan = padded_reduce_scatter();
  SECTION("the fill is missing") {
    plan.steps.erase(plan.steps.begin() + 1);
    plan.steps[1].after = {StepId{0}};
    plan.steps[2].after = {StepId{1}};
    CHECK_THAT(fault(plan), Catch::Contains("were never written"));
  }
  SECTION("the collective does not wait for the copy") {
    plan.steps[2].after = {StepId{1}};
    CHECK_THAT(
        fault(plan),
        Catch::Contains(
            "reads buffer 2 on rank 0, which step 0 writes, without being ordered after it"));
  }
  SECTION("the trim does not wait for the collective") {
    plan.steps[3].after = {StepId{1}};
    CHECK_THAT(fault(plan), Catch::Contains("which step 2 writes, without being ordered"));
  }
  SECTION("the trim takes the padding") {
    auto& trim = std::get<CopyStep>(plan.steps[3].body);
    MoveList moves(1);
    moves.push_back(trim.moves[0]);
    moves.push_back({BufferId{3}, kDestinationBuffer, {1}, {0}, {1}});
    trim.moves = moves;
    CHECK_THAT(fault(plan), Catch::Contains("padding reaches [0:1] of the destination on rank 1"));
  }
  SECTION("a step depends on a later one") {
    plan.steps[1].after = {StepId{3}};
    CHECK_THAT(fault(plan), Catch::Contains("not an earlier one"));
  }
  SECTION("the wrong operator") {
    std::get<CollectiveStep>(plan.steps[2].body).op = ReduceOp::Max;
    CHECK_THAT(fault(plan), Catch::Contains("folds by max, but the request by sum"));
  }
  SECTION("a division nobody asked for") {
    std::get<CollectiveStep>(plan.steps[2].body).divisor = 2;
    CHECK_THAT(fault(plan), Catch::Contains("not the complete fold"));
  }
  SECTION("padding folded with values") {
    auto& pack = std::get<CopyStep>(plan.steps[0].body);
    MoveList moves(1);
    moves.push_back(pack.moves[0]);
    moves.push_back({kSourceBuffer, BufferId{2}, {0}, {0}, {2}});
    pack.moves = moves;
    std::get<FillStep>(plan.steps[1].body).parts[1].box = Box{{2}, {4}};
    CHECK_THAT(fault(plan), Catch::Contains("padding reaches"));
  }
}

TEST_CASE("wrong folds are refuted") {
  Plan plan = folded();
  SECTION("an addend twice") {
    reduce_of(plan).operands[1] = {kSourceBuffer, {0}};
    CHECK_THAT(fault(plan), Catch::Contains("folds an addend twice"));
  }
  SECTION("an addend missing") {
    reduce_of(plan).parts[0].operand_count = 1;
    reduce_of(plan).parts[1].first_operand = 1;
    reduce_of(plan).operands.erase(reduce_of(plan).operands.begin() + 1);
    CHECK_THAT(fault(plan), Catch::Contains("not the complete fold"));
  }
  SECTION("different elements") {
    reduce_of(plan).operands[0].lo = {1};
    CHECK_THAT(fault(plan), Catch::Contains("different elements"));
  }
  SECTION("outside the buffer") {
    reduce_of(plan).operands[1].lo = {1};
    CHECK_THAT(fault(plan), Catch::Contains("outside buffer 2"));
  }
  SECTION("a message to itself") {
    std::get<ExchangeStep>(plan.steps[0].body).messages[0].destination = 0;
    CHECK_THAT(fault(plan), Catch::Contains("from rank 0 to itself"));
  }
  SECTION("messages out of order") {
    std::swap(std::get<ExchangeStep>(plan.steps[0].body).messages[0].source,
              std::get<ExchangeStep>(plan.steps[0].body).messages[0].destination);
    CHECK_THAT(fault(plan), Catch::Contains("out of order or twice"));
  }
  SECTION("avg as an operator") {
    reduce_of(plan).op = ReduceOp::Avg;
    CHECK_THAT(fault(plan), Catch::Contains("avg"));
  }
}

TEST_CASE("an average of which one addend is divided before the fold is refuted") {
  Plan plan(request("2", "2", "P(avg)", "R"), "hand");
  BufferId halved = plan.add_temporary(), landing = plan.add_temporary();
  ReduceStep divide, fold;
  divide.divisor = 2;
  ExchangeStep exchange;
  for (Slot slot : {0, 1}) {
    plan.buffer(halved).set_shape(slot, {2});
    plan.buffer(landing).set_shape(slot, {2});
    divide.parts.push_back({slot, halved, {0}, {2}, static_cast<std::uint32_t>(slot), 1});
    divide.operands.push_back({kSourceBuffer, {0}});
    exchange.messages.push_back({slot, 1 - slot, {static_cast<std::uint32_t>(slot), 1}});
    exchange.moves.push_back({halved, landing, {0}, {0}, {2}});
    fold.parts.push_back(
        {slot, kDestinationBuffer, {0}, {2}, static_cast<std::uint32_t>(2 * slot), 2});
    fold.operands.push_back({halved, {0}});
    fold.operands.push_back({landing, {0}});
  }
  StepId divided = plan.add_step(divide, {}), sent = plan.add_step(exchange, {divided});
  plan.add_step(fold, {divided, sent});
  CHECK(fault(plan).empty());
  MoveList undivided(1);
  for (int message = 0; message < 2; ++message)
    undivided.push_back({kSourceBuffer, landing, {0}, {0}, {2}});
  std::get<ExchangeStep>(plan.steps[1].body).moves = undivided;
  CHECK_THAT(fault(plan), Catch::Contains("values divided differently"));
}

TEST_CASE("a rank without a part in a step is not ordered by it") {
  // Rank 1 reads in step 2 what step 0 wrote on it; step 1 lies between them but has no part of
  // rank 1.
  Plan plan(request("4", "2", "R", "R"), "hand");
  BufferId temporary = plan.add_temporary();
  CopyStep first, second, third;
  for (Slot slot : {0, 1}) {
    plan.buffer(temporary).set_shape(slot, {4});
    first.parts.push_back({slot, {static_cast<std::uint32_t>(slot), 1}});
    first.moves.push_back({kSourceBuffer, temporary, {0}, {0}, {4}});
  }
  second.parts.push_back({0, {0, 1}});
  second.moves.push_back({temporary, kDestinationBuffer, {0}, {0}, {4}});
  third.parts.push_back({1, {0, 1}});
  third.moves.push_back({temporary, kDestinationBuffer, {0}, {0}, {4}});
  StepId a = plan.add_step(first, {}), b = plan.add_step(second, {a});
  plan.add_step(third, {b});
  CHECK_THAT(fault(plan), Catch::Contains("without being ordered"));
  plan.steps[2].after = {a, b};
  CHECK(fault(plan).empty());
}

TEST_CASE("a rank's step is ordered after all that the rank's step before it is after") {
  Plan plan(request("4", "1", "R", "R"), "hand");
  BufferId one = plan.add_temporary(), other = plan.add_temporary();
  std::vector<StepId> after;
  for (auto [from, to] : {std::pair{kSourceBuffer, one}, std::pair{kSourceBuffer, other},
                          std::pair{one, kDestinationBuffer}}) {
    plan.buffer(to).set_shape(0, {4});
    CopyStep copy;
    copy.parts.push_back({0, {0, 1}});
    copy.moves.push_back({from, to, {0}, {0}, {4}});
    after = {plan.add_step(copy, after)};
  }
  CHECK(fault(plan).empty());
}

TEST_CASE(
    "wrong plans of other planners' requests are refuted: a destination shard from the wrong "
    "replica of a strided shard") {
  Plan plan = plan_p2p(request("8", "2x2", "_S(0,2)S(0)", "S(0)S(0)"), {});
  REQUIRE(fault(plan).empty());
  for (Step& step : plan.steps)
    if (auto* exchange = std::get_if<ExchangeStep>(&step.body)) {
      Move move = exchange->moves[0];
      move.source_lo[0] = 1 - move.source_lo[0];
      MoveList moves(1);
      moves.push_back(move);
      for (std::size_t i = 1; i < exchange->moves.size(); ++i) moves.push_back(exchange->moves[i]);
      exchange->moves = moves;
    }
  CHECK_FALSE(fault(plan).empty());
}
