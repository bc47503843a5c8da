// SPDX-License-Identifier: BSD-3-Clause
// Wrong plans of 2-d tensors and of groups of three, each with a single fault that shows only
// there.
#include <catch2/catch.hpp>

#include "core/proof/proof.h"
#include "tests/core/proof/hand_plans.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Plan plan_of(const char* shape, const char* mesh, const char* from, const char* to) {
  return Plan(request(shape, mesh, from, to), "hand");
}

BufferId temporary(Plan& plan, const Shape& shape) {
  BufferId id = plan.add_temporary();
  for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot)
    plan.buffer(id).set_shape(slot, shape);
  return id;
}

// One move on every rank.
CopyStep copy_on_all(const Plan& plan, const Move& move) {
  CopyStep step{{}, MoveList(plan.dims())};
  for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot) {
    step.parts.push_back({slot, {static_cast<std::uint32_t>(slot), 1}});
    step.moves.push_back(move);
  }
  return step;
}

CollectiveStep over_all(const Plan& plan, CollectiveKind kind, BufferId input, BufferId output) {
  CollectiveStep step{};
  step.kind = kind;
  step.input = input;
  step.output = output;
  step.group_size = static_cast<std::int32_t>(plan.slot_count());
  for (Slot slot = 0; slot < step.group_size; ++slot) step.members.push_back(slot);
  return step;
}

// P(sum) -> S(1) of (2,4) on two ranks: each gets the other's half of its columns and folds.
Plan folded_columns() {
  Plan plan = plan_of("2,4", "2", "P(sum)", "S(1)");
  BufferId landing = temporary(plan, {2, 2});
  ExchangeStep exchange{{}, MoveList(2)};
  ReduceStep reduce;
  for (Slot slot : {0, 1}) {
    exchange.messages.push_back({slot, 1 - slot, {static_cast<std::uint32_t>(slot), 1}});
    exchange.moves.push_back({kSourceBuffer, landing, {0, 2 * (1 - slot)}, {0, 0}, {2, 2}});
    reduce.parts.push_back(
        {slot, kDestinationBuffer, {0, 0}, {2, 2}, static_cast<std::uint32_t>(2 * slot), 2});
    reduce.operands.push_back({kSourceBuffer, {0, 2 * slot}});
    reduce.operands.push_back({landing, {0, 0}});
  }
  StepId sent = plan.add_step(exchange, {});
  plan.add_step(reduce, {sent});
  return plan;
}

}  // namespace

TEST_CASE("what a collective leaves alike on two ranks is looked at for each") {
  SECTION("ranks that want other columns") {
    Plan plan = plan_of("2,2", "2", "P(sum)", "S(1)");
    BufferId column = temporary(plan, {2, 1});
    StepId packed =
        plan.add_step(copy_on_all(plan, {kSourceBuffer, column, {0, 0}, {0, 0}, {2, 1}}), {});
    plan.add_step(over_all(plan, CollectiveKind::AllReduce, column, kDestinationBuffer), {packed});
    CHECK(fault(plan) ==
          "[0:2,0:1] of the destination on rank 1 holds the elements at [0:2,0:1] instead of "
          "[0:2,1:2]");
  }
  SECTION("ranks that want other rows") {
    Plan plan = plan_of("2,2", "2", "P(sum)", "S(0)");
    BufferId row = temporary(plan, {1, 2});
    StepId packed =
        plan.add_step(copy_on_all(plan, {kSourceBuffer, row, {0, 0}, {0, 0}, {1, 2}}), {});
    plan.add_step(over_all(plan, CollectiveKind::AllReduce, row, kDestinationBuffer), {packed});
    CHECK(fault(plan) ==
          "[0:1,0:2] of the destination on rank 1 holds the elements at [0:1,0:2] instead of "
          "[1:2,0:2]");
  }
  SECTION("ranks that want other addends") {
    // Halves of rank 0's addend, gathered on both.
    Plan plan = plan_of("2", "2", "P(sum)", "P(sum)");
    BufferId half = temporary(plan, {1});
    CopyStep own{{{0, {0, 1}}}, MoveList(1)};
    own.moves.push_back({kSourceBuffer, half, {0}, {0}, {1}});
    ExchangeStep other{{{0, 1, {0, 1}}}, MoveList(1)};
    other.moves.push_back({kSourceBuffer, half, {1}, {0}, {1}});
    StepId a = plan.add_step(own, {}), b = plan.add_step(other, {});
    plan.add_step(over_all(plan, CollectiveKind::AllGather, half, kDestinationBuffer), {a, b});
    CHECK(fault(plan) ==
          "[0:1] of the destination on rank 1 is not the complete fold that the request defines");
  }
}

TEST_CASE("what a rank adds to what a collective left alike is its own") {
  // The first column is gathered on both ranks; the second comes to rank 0 only.
  Plan plan = plan_of("2,2", "2", "S(0)", "R");
  CollectiveStep column =
      over_all(plan, CollectiveKind::AllGather, kSourceBuffer, kDestinationBuffer);
  column.input_boxes = {Box{{0, 0}, {1, 1}}};
  column.output_boxes = {Box{{0, 0}, {2, 1}}};
  plan.add_step(column, {});
  CopyStep own{{{0, {0, 1}}}, MoveList(2)};
  own.moves.push_back({kSourceBuffer, kDestinationBuffer, {0, 1}, {0, 1}, {1, 1}});
  plan.add_step(own, {});
  ExchangeStep other{{{1, 0, {0, 1}}}, MoveList(2)};
  other.moves.push_back({kSourceBuffer, kDestinationBuffer, {0, 1}, {1, 1}, {1, 1}});
  plan.add_step(other, {});
  CHECK(fault(plan) == "2 elements of the destination on rank 1 are never written");
}

TEST_CASE("folds of 2-d boxes") {
  Plan plan = folded_columns();
  REQUIRE(fault(plan).empty());
  SECTION("of elements that differ in their column") {
    reduce_of(plan).operands[0].lo = {0, 1};
    CHECK(fault(plan) == "step 1 (reduce) folds different elements of the tensor on rank 0");
  }
  SECTION("into a box outside its buffer") {
    reduce_of(plan).parts[1].destination_lo = {0, 1};
    CHECK(fault(plan) ==
          "step 1 (reduce) has a box at (0,1) of extents (2,2) outside buffer 1 of shape (2,2) on "
          "rank 1");
  }
  SECTION("into boxes of other dims") {
    reduce_of(plan).parts[0].destination_lo = {0, 0, 0};
    CHECK(fault(plan) == "step 1 (reduce) has boxes with other dims than the plan");
  }
  SECTION("out of boxes of other dims") {
    reduce_of(plan).operands[1].lo = {0};
    CHECK(fault(plan) == "step 1 (reduce) has boxes with other dims than the plan");
  }
  SECTION("of more operands than there are") {
    reduce_of(plan).parts[1].operand_count = 3;
    CHECK(fault(plan) == "step 1 (reduce) has an empty or overlapping list of operands");
  }
}

TEST_CASE("outputs of one group are of one shape") {
  Plan plan = plan_of("4", "2", "S(0)", "R");
  BufferId gathered = temporary(plan, {4});
  StepId done =
      plan.add_step(over_all(plan, CollectiveKind::AllGather, kSourceBuffer, gathered), {});
  plan.add_step(copy_on_all(plan, {gathered, kDestinationBuffer, {0}, {0}, {4}}), {done});
  REQUIRE(fault(plan).empty());
  plan.buffer(gathered).set_shape(1, {5});
  CHECK(fault(plan) ==
        "step 0 (all_gather) has buffers of different shapes on ranks 0 and 1 of one group");
}

TEST_CASE("source and destination are of the request's shape, and on its ranks only") {
  Plan plan = folded_columns();
  SECTION("the source") {
    plan.buffer(kSourceBuffer).set_shape(0, {2, 5});
    CHECK(fault(plan) == "buffer 0 on rank 0 does not have the request's shape");
  }
  SECTION("the destination") {
    plan.buffer(kDestinationBuffer).set_shape(1, {1, 4});
    CHECK(fault(plan) == "buffer 1 on rank 1 does not have the request's shape");
  }
  SECTION("a rank that does not have it") {
    plan.buffer(kDestinationBuffer).set_shape(1, {-1, -1});
    CHECK(fault(plan) == "buffer 1 on rank 1 does not have the request's shape");
  }
  SECTION("a rank of the other mesh") {
    auto one = std::make_shared<const Mesh>(parse_mesh("1"));
    auto two = std::make_shared<const Mesh>(parse_mesh("2"));
    Plan other(Request(parse_layout("4", "f32", one, "R"), parse_layout("4", "f32", two, "R")),
               "hand");
    other.buffer(kSourceBuffer).set_shape(1, {4});
    CHECK(fault(other) == "buffer 0 on rank 1 does not have the request's shape");
  }
}

TEST_CASE("padding that a ring of three carries") {
  // P(sum) -> R of 2 elements, padded to 3. What all_reduce carries of an element: 2 (n - 1).
  Plan plan = plan_of("2", "3", "P(sum)", "R");
  BufferId in = temporary(plan, {3}), out = temporary(plan, {3});
  StepId packed = plan.add_step(copy_on_all(plan, {kSourceBuffer, in, {0}, {0}, {2}}), {});
  FillStep fill;
  for (Slot slot : {0, 1, 2}) fill.parts.push_back({slot, in, Box{{2}, {3}}});
  StepId filled = plan.add_step(fill, {});
  StepId done = plan.add_step(over_all(plan, CollectiveKind::AllReduce, in, out), {packed, filled});
  plan.add_step(copy_on_all(plan, {out, kDestinationBuffer, {0}, {0}, {2}}), {done});
  REQUIRE(fault(plan).empty());
  CHECK(check_plan(plan).padding_bytes == std::vector<std::int64_t>{0, 0, 1 * 2 * 2 * 4, 0});

  // reduce_scatter of blocks of 1: n - 1; all_gather of what comes out: n - 1.
  Plan halves = plan_of("2", "3", "P(sum)", "R");
  in = temporary(halves, {3});
  BufferId block = temporary(halves, {1});
  out = temporary(halves, {3});
  packed = halves.add_step(copy_on_all(halves, {kSourceBuffer, in, {0}, {0}, {2}}), {});
  filled = halves.add_step(fill, {});
  StepId scattered =
      halves.add_step(over_all(halves, CollectiveKind::ReduceScatter, in, block), {packed, filled});
  StepId gathered =
      halves.add_step(over_all(halves, CollectiveKind::AllGather, block, out), {scattered});
  halves.add_step(copy_on_all(halves, {out, kDestinationBuffer, {0}, {0}, {2}}), {gathered});
  REQUIRE(fault(halves).empty());
  CHECK(check_plan(halves).padding_bytes == std::vector<std::int64_t>{0, 0, 2 * 4, 2 * 4, 0});

  // all_to_all: all of it but what a rank keeps.
  Plan turned = plan_of("6,1", "3", "S(0)", "S(0)");
  in = temporary(turned, {3, 1});
  out = temporary(turned, {3, 1});
  packed = turned.add_step(copy_on_all(turned, {kSourceBuffer, in, {0, 0}, {0, 0}, {2, 1}}), {});
  for (FillStep::SlotFill& part : fill.parts) part.box = Box{{2, 0}, {3, 1}};
  filled = turned.add_step(fill, {});
  turned.add_step(over_all(turned, CollectiveKind::AllToAll, in, out), {packed, filled});
  turned.add_step(copy_on_all(turned, {kSourceBuffer, kDestinationBuffer, {0, 0}, {0, 0}, {2, 1}}),
                  {});
  REQUIRE(fault(turned).empty());
  CHECK(check_plan(turned).padding_bytes == std::vector<std::int64_t>{0, 0, 2 * 4, 0});

  // A message that carries padding.
  Plan sent = plan_of("2", "2", "S(0)", "S(0)");
  in = temporary(sent, {2});
  out = temporary(sent, {2});
  FillStep both;
  for (Slot slot : {0, 1}) both.parts.push_back({slot, in, Box{{0}, {2}}});
  filled = sent.add_step(both, {});
  ExchangeStep message{{{0, 1, {0, 1}}}, MoveList(1)};
  message.moves.push_back({in, out, {0}, {0}, {2}});
  sent.add_step(message, {filled});
  sent.add_step(copy_on_all(sent, {kSourceBuffer, kDestinationBuffer, {0}, {0}, {1}}), {});
  REQUIRE(fault(sent).empty());
  CHECK(check_plan(sent).padding_bytes == std::vector<std::int64_t>{0, 2 * 4, 0});
}

TEST_CASE("blocks that do not lie one after the other are refuted, whatever the dims before them") {
  // Gathered along dim 1 of (2,4), whose halves are no halves of its memory.
  Plan plan = plan_of("2,4", "2", "S(1)", "R");
  CollectiveStep step =
      over_all(plan, CollectiveKind::AllGather, kSourceBuffer, kDestinationBuffer);
  step.output_dim = 1;
  plan.add_step(step, {});
  CHECK(fault(plan) ==
        "step 0 (all_gather) lays blocks along dim 1 of a buffer of shape (2,4), where they are "
        "not contiguous");
}

TEST_CASE("boxes that no straight line parts are told from boxes that overlap") {
  // A windmill: four boxes around one.
  Plan plan = plan_of("3,3", "1", "R", "R");
  CopyStep step{{{0, {0, 5}}}, MoveList(2)};
  auto add = [&](const DimVector& lo, const DimVector& extents) {
    step.moves.push_back({kSourceBuffer, kDestinationBuffer, lo, lo, extents});
  };
  add({0, 0}, {1, 2});
  add({0, 2}, {2, 1});
  add({2, 1}, {1, 2});
  add({1, 0}, {2, 1});
  SECTION("apart") {
    add({1, 1}, {1, 1});
    plan.add_step(step, {});
    CHECK(fault(plan).empty());
  }
  SECTION("the one in the middle overlaps the last") {
    add({1, 0}, {1, 2});
    plan.add_step(step, {});
    CHECK(fault(plan) == "step 0 writes [1:2,0:1] of buffer 1 on rank 0, which step 0 writes too");
  }
  SECTION("the one in the middle overlaps the first") {
    add({0, 1}, {2, 1});
    plan.add_step(step, {});
    CHECK(fault(plan) == "step 0 writes [0:1,1:2] of buffer 1 on rank 0, which step 0 writes too");
  }
}

// As many elements are written twice as are not written at all, so that only the overlap tells.
TEST_CASE("two boxes of many that overlap are found") {
  auto fault_of = [](const char* shape, const std::vector<Box>& boxes) {
    Plan plan = plan_of(shape, "1", "R", "R");
    CopyStep step{{{0, {0, static_cast<std::uint32_t>(boxes.size())}}}, MoveList(plan.dims())};
    for (const Box& box : boxes)
      step.moves.push_back({kSourceBuffer, kDestinationBuffer, box.lo, box.lo, box.extents()});
    plan.add_step(step, {});
    return fault(plan);
  };
  SECTION("behind the last cut") {
    std::vector<Box> boxes;
    for (std::int64_t i = 1; i < 18; ++i) boxes.push_back({{i}, {i + 1}});
    boxes.push_back({{18}, {20}});
    boxes.push_back({{19}, {20}});
    CHECK(fault_of("20", boxes) ==
          "step 0 writes [19:20] of buffer 1 on rank 0, which step 0 writes too");
  }
  SECTION("a long one and one that begins behind the end of others") {
    std::vector<Box> boxes{{{0, 0}, {10, 1}}};
    for (std::int64_t i = 0; i < 10; ++i) boxes.push_back({{i, 1}, {i + 1, 2}});
    for (std::int64_t i = 0; i < 9; ++i) boxes.push_back({{i, 2}, {i + 1, 3}});
    boxes.push_back({{3, 0}, {4, 1}});
    CHECK(fault_of("10,3", boxes) ==
          "step 0 writes [3:4,0:1] of buffer 1 on rank 0, which step 0 writes too");
  }
}
