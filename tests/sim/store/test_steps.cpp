// SPDX-License-Identifier: BSD-3-Clause
// Every kind of step, in plans written by hand, on values written out.
#include <catch2/catch.hpp>

#include <cstring>
#include <map>

#include "core/base/errors.h"
#include "sim/store/store.h"
#include "tests/support/oracle.h"
#include "tests/support/rough_data.h"

using namespace reshard;
using namespace reshard::test;

namespace {

using Values = std::vector<float>;
using ShardValues = std::map<int, Values>;  // by rank

Plan plan_of(const char* shape, int ranks, const char* from, const char* to,
             std::string_view dtype = "f32") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({ranks}));
  return Plan(Request(parse_layout(shape, dtype, mesh, from), parse_layout(shape, dtype, mesh, to)),
              "by hand");
}

// Runs a plan of f32 on the given source shards.
ShardValues run(const Plan& plan, const ShardValues& sources) {
  sim::Store store({.poison = true});
  ShardValues out;
  run_once(
      store, plan,
      [&](Rank rank, std::span<std::byte> bytes) {
        const Values& values = sources.at(to_int(rank));
        REQUIRE(bytes.size() == values.size() * 4);
        if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
      },
      [&](Rank rank, std::span<const std::byte> bytes) {
        Values& values = out[to_int(rank)];
        values.resize(bytes.size() / 4);
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
      });
  return out;
}

void set_all(Plan& plan, BufferId buffer, const Shape& shape) {
  for (Slot slot = 0; slot < static_cast<Slot>(plan.slot_count()); ++slot)
    plan.buffer(buffer).set_shape(slot, shape);
}

CollectiveStep collective(CollectiveKind kind, BufferId input, BufferId output,
                          std::vector<Slot> members, std::int32_t group_size) {
  CollectiveStep step{};
  step.kind = kind;
  step.input = input;
  step.output = output;
  step.members = std::move(members);
  step.group_size = group_size;
  return step;
}

}  // namespace

TEST_CASE("copy: boxes between buffers of one rank") {
  Plan plan = plan_of("2,3", 2, "R", "S(1)");  // 2 columns and 1 column
  CopyStep step{{{0, {0, 1}}, {1, {1, 1}}}, MoveList(2)};
  step.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 0}, DimVector{0, 0}, DimVector{2, 2}});
  step.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 2}, DimVector{0, 0}, DimVector{2, 1}});
  plan.add_step(step, {});
  CHECK(run(plan, {{0, {1, 2, 3, 4, 5, 6}}}) == ShardValues{{0, {1, 2, 4, 5}}, {1, {3, 6}}});
}

TEST_CASE("exchange: messages of several boxes") {
  Plan plan = plan_of("2,2", 2, "S(0)", "S(1)");
  CopyStep own{{{0, {0, 1}}, {1, {1, 1}}}, MoveList(2)};
  own.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 0}, DimVector{0, 0}, DimVector{1, 1}});
  own.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 1}, DimVector{1, 0}, DimVector{1, 1}});
  ExchangeStep step{{{0, 1, {0, 1}}, {1, 0, {1, 1}}}, MoveList(2)};
  step.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 1}, DimVector{0, 0}, DimVector{1, 1}});
  step.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0, 0}, DimVector{1, 0}, DimVector{1, 1}});
  plan.add_step(own, {});
  plan.add_step(step, {});
  CHECK(run(plan, {{0, {1, 2}}, {1, {3, 4}}}) == ShardValues{{0, {1, 3}}, {1, {2, 4}}});
}

TEST_CASE("fill, all_gather and what padding leaves: 5 elements on 2 ranks") {
  Plan plan = plan_of("5", 2, "S(0)", "R");  // 3 and 2
  BufferId padded = plan.add_temporary(), gathered = plan.add_temporary();
  set_all(plan, padded, Shape{3});
  set_all(plan, gathered, Shape{6});
  CopyStep in{{{0, {0, 1}}, {1, {1, 1}}}, MoveList(1)};
  in.moves.push_back({kSourceBuffer, padded, DimVector{0}, DimVector{0}, DimVector{3}});
  in.moves.push_back({kSourceBuffer, padded, DimVector{0}, DimVector{0}, DimVector{2}});
  plan.add_step(in, {});
  plan.add_step(FillStep{{{1, padded, Box{DimVector{2}, DimVector{3}}}}}, {});
  plan.add_step(collective(CollectiveKind::AllGather, padded, gathered, {0, 1}, 2),
                {StepId{0}, StepId{1}});
  CopyStep out{{{0, {0, 1}}, {1, {0, 1}}}, MoveList(1)};
  out.moves.push_back({gathered, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{5}});
  plan.add_step(out, {StepId{2}});
  CHECK(run(plan, {{0, {1, 2, 3}}, {1, {4, 5}}}) ==
        ShardValues{{0, {1, 2, 3, 4, 5}}, {1, {1, 2, 3, 4, 5}}});
}

TEST_CASE("filled boxes hold zeros") {
  Plan plan = plan_of("4", 1, "R", "R");
  CopyStep copy{{{0, {0, 1}}}, MoveList(1)};
  copy.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{1}});
  plan.add_step(copy, {});
  plan.add_step(FillStep{{{0, kDestinationBuffer, Box{DimVector{1}, DimVector{4}}}}}, {});
  CHECK(run(plan, {{0, {7, 8, 9, 10}}}) == ShardValues{{0, {7, 0, 0, 0}}});
}

TEST_CASE("all_to_all: block i of member j becomes block j of member i") {
  Plan plan = plan_of("3,3", 3, "S(0)", "S(1)");
  // A row of three blocks of one element each goes out; what comes in is already the column.
  CollectiveStep step =
      collective(CollectiveKind::AllToAll, kSourceBuffer, kDestinationBuffer, {0, 1, 2}, 3);
  step.input_dim = 1;
  plan.add_step(step, {});
  CHECK(run(plan, {{0, {1, 2, 3}}, {1, {4, 5, 6}}, {2, {7, 8, 9}}}) ==
        ShardValues{{0, {1, 4, 7}}, {1, {2, 5, 8}}, {2, {3, 6, 9}}});
}

TEST_CASE("collectives follow the order of their group, and groups are apart") {
  Plan plan = plan_of("2,2", 4, "R", "R");
  // all_gather of one rank's whole shard from each of two members needs twice the room.
  BufferId pair = plan.add_temporary();
  set_all(plan, pair, Shape{4, 2});
  plan.add_step(collective(CollectiveKind::AllGather, kSourceBuffer, pair, {2, 0, 1, 3}, 2), {});
  CopyStep copy{{{0, {0, 1}}, {1, {0, 1}}, {2, {0, 1}}, {3, {0, 1}}}, MoveList(2)};
  copy.moves.push_back(
      {pair, kDestinationBuffer, DimVector{1, 0}, DimVector{0, 0}, DimVector{2, 2}});
  plan.add_step(copy, {StepId{0}});
  // Replicas share one shard, so that order cannot show in it; the seam between blocks does.
  CHECK(run(plan, {{0, {1, 2, 3, 4}}}).at(3) == Values{3, 4, 1, 2});
}

TEST_CASE("reducing collectives fold in group order, rounding after every operation") {
  // 2^24 + 1 rounds to 2^24 in f32; 1 + 1 + 2^24 does not lose the ones.
  const float big = 16777216.0f;
  for (bool big_first : {true, false}) {
    std::vector<Slot> order = big_first ? std::vector<Slot>{0, 1, 2} : std::vector<Slot>{2, 1, 0};
    float sum = big_first ? big : big + 2;
    ShardValues sources{{0, {big, 1, 3}}, {1, {1, 1, 3}}, {2, {1, big, 3}}};

    Plan all = plan_of("3", 3, "P(sum)", "R");
    all.add_step(collective(CollectiveKind::AllReduce, kSourceBuffer, kDestinationBuffer, order, 3),
                 {});
    Values expected{sum, big_first ? big + 2 : big, 9};
    CHECK(run(all, sources) == ShardValues{{0, expected}, {1, expected}, {2, expected}});

    Plan scatter = plan_of("3", 3, "P(sum)", "S(0)");
    CollectiveStep step =
        collective(CollectiveKind::ReduceScatter, kSourceBuffer, kDestinationBuffer, order, 3);
    step.divisor = 2;
    scatter.add_step(step, {});
    // Block i goes to the i-th of the group.
    ShardValues halves{{order[0], {sum / 2}}, {order[1], {expected[1] / 2}}, {order[2], {4.5f}}};
    CHECK(run(scatter, sources) == halves);
  }
}

TEST_CASE("reduce: operands in listed order from boxes of several buffers, then one division") {
  Plan plan = plan_of("2,3", 2, "P(sum)", "R");
  BufferId other = plan.add_temporary();
  set_all(plan, other, Shape{3, 4});
  ExchangeStep exchange{{{0, 1, {0, 1}}, {1, 0, {0, 1}}}, MoveList(2)};
  exchange.moves.push_back(
      {kSourceBuffer, other, DimVector{0, 0}, DimVector{1, 1}, DimVector{2, 3}});
  plan.add_step(exchange, {});
  ReduceStep reduce{};
  reduce.divisor = 2;
  // Rank 0: own first; rank 1: in two parts, the other's first.
  reduce.operands = {{kSourceBuffer, DimVector{0, 0}}, {other, DimVector{1, 1}},
                     {other, DimVector{1, 1}},         {kSourceBuffer, DimVector{0, 0}},
                     {other, DimVector{1, 3}},         {kSourceBuffer, DimVector{0, 2}}};
  reduce.parts = {{0, kDestinationBuffer, DimVector{0, 0}, DimVector{2, 3}, 0, 2},
                  {1, kDestinationBuffer, DimVector{0, 0}, DimVector{2, 2}, 2, 2},
                  {1, kDestinationBuffer, DimVector{0, 2}, DimVector{2, 1}, 4, 2}};
  plan.add_step(reduce, {StepId{0}});
  ShardValues out = run(plan, {{0, {1, 2, 3, 4, 5, 6}}, {1, {10, 20, 30, 40, 50, 60}}});
  Values expected{5.5f, 11, 16.5f, 22, 27.5f, 33};
  CHECK(out == ShardValues{{0, expected}, {1, expected}});
}

TEST_CASE("a fold does not write the buffer that it reads") {
  auto fold_of = [](BufferId operand) {
    Plan plan = plan_of("4", 1, "R", "R");
    CopyStep copy{{{0, {0, 1}}}, MoveList(1)};
    copy.moves.push_back(
        {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{4}});
    StepId copied = plan.add_step(copy, {});
    ReduceStep fold{};
    fold.operands = {{operand, DimVector{0}}};
    fold.parts = {{0, kDestinationBuffer, DimVector{2}, DimVector{2}, 0, 1}};
    plan.add_step(fold, {copied});
    return run(plan, {{0, {1, 2, 3, 4}}});
  };
  CHECK(fold_of(kSourceBuffer) == ShardValues{{0, {1, 2, 1, 2}}});
  CHECK_THROWS_WITH(fold_of(kDestinationBuffer), Catch::Contains("written from itself"));
  CHECK_THROWS_AS(fold_of(kDestinationBuffer), CheckFailure);
}

TEST_CASE("floating sums in many orders equal the oracle bit for bit") {
  // Values of very different size: the 24 orders of four addends give several results.
  const std::vector<float> addends{1e8f, 3.14159f, -1e8f, 2.5e-3f};
  std::map<float, int> results;
  std::vector<Slot> order{0, 1, 2, 3};
  do {
    Plan plan = plan_of("1", 4, "P(sum)", "R");
    CollectiveStep step =
        collective(CollectiveKind::AllReduce, kSourceBuffer, kDestinationBuffer, order, 4);
    step.divisor = 4;
    plan.add_step(step, {});
    ShardValues out =
        run(plan, {{0, {addends[0]}}, {1, {addends[1]}}, {2, {addends[2]}}, {3, {addends[3]}}});
    std::vector<std::uint64_t> operands;
    for (Slot slot : order)
      operands.push_back(std::bit_cast<std::uint32_t>(addends[static_cast<std::size_t>(slot)]));
    for (const auto& [rank, values] : out)
      CHECK(std::bit_cast<std::uint32_t>(values[0]) ==
            folded(ReduceOp::Sum, DType::F32, 4, operands));
    ++results[out[0][0]];
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(results.size() >= 4);
}

TEST_CASE("a 0-d tensor is one element") {
  Plan plan = plan_of("", 2, "P(avg)", "R");
  CollectiveStep step =
      collective(CollectiveKind::AllReduce, kSourceBuffer, kDestinationBuffer, {0, 1}, 2);
  step.divisor = 2;
  plan.add_step(step, {});
  CHECK(run(plan, {{0, {1}}, {1, {4}}}) == ShardValues{{0, {2.5f}}, {1, {2.5f}}});
}

TEST_CASE("empty shards come out empty, in rank order") {
  Plan plan = plan_of("2", 4, "S(0)", "S(0)");
  CopyStep step{{{0, {0, 1}}, {1, {0, 1}}}, MoveList(1)};
  step.moves.push_back(
      {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{1}});
  plan.add_step(step, {});
  CHECK(run(plan, {{0, {1}}, {1, {2}}, {2, {}}, {3, {}}}) ==
        ShardValues{{0, {1}}, {1, {2}}, {2, {}}, {3, {}}});
}

TEST_CASE("what lies outside a buffer, is not there, or was not written is refused") {
  auto copy_with = [](const Move& move) {
    Plan plan = plan_of("4", 2, "S(0)", "S(0)");
    BufferId lonely = plan.add_temporary();
    plan.buffer(lonely).set_shape(0, Shape{2});
    CopyStep step{{{0, {0, 1}}, {1, {1, 1}}}, MoveList(1)};
    step.moves.push_back(
        {kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{2}});
    step.moves.push_back(move);
    plan.add_step(step, {});
    run(plan, {{0, {1, 2}}, {1, {3, 4}}});
  };
  CHECK_THROWS_AS(
      copy_with({kSourceBuffer, kDestinationBuffer, DimVector{1}, DimVector{0}, DimVector{2}}),
      CheckFailure);
  CHECK_THROWS_AS(
      copy_with({kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{1}, DimVector{2}}),
      CheckFailure);
  CHECK_THROWS_AS(
      copy_with({kSourceBuffer, kDestinationBuffer, DimVector{-1}, DimVector{0}, DimVector{1}}),
      CheckFailure);
  CHECK_THROWS_AS(
      copy_with({kDestinationBuffer, BufferId{2}, DimVector{0}, DimVector{0}, DimVector{1}}),
      CheckFailure);  // slot 1 does not have it
  CHECK_THROWS_AS(
      copy_with({kSourceBuffer, kSourceBuffer, DimVector{0}, DimVector{1}, DimVector{1}}),
      CheckFailure);
  CHECK_THROWS_AS(copy_with({kSourceBuffer, BufferId{7}, DimVector{0}, DimVector{0}, DimVector{1}}),
                  CheckFailure);
  CHECK_NOTHROW(
      copy_with({kSourceBuffer, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{2}}));

  Plan unread = plan_of("4", 1, "R", "R");
  BufferId temporary = unread.add_temporary();
  set_all(unread, temporary, Shape{4});
  CopyStep step{{{0, {0, 1}}}, MoveList(1)};
  step.moves.push_back({temporary, kDestinationBuffer, DimVector{0}, DimVector{0}, DimVector{4}});
  unread.add_step(step, {});
  CHECK_THROWS_AS(run(unread, {{0, {1, 2, 3, 4}}}), CheckFailure);
}

TEST_CASE("collectives whose buffers do not match are refused") {
  Plan plan = plan_of("4", 2, "R", "S(0)");
  plan.add_step(collective(CollectiveKind::AllGather, kSourceBuffer, kDestinationBuffer, {0, 1}, 2),
                {});
  CHECK_THROWS_AS(run(plan, {{0, {1, 2, 3, 4}}}), CheckFailure);
  Plan uneven = plan_of("3", 2, "S(0)", "R");
  uneven.add_step(
      collective(CollectiveKind::AllGather, kSourceBuffer, kDestinationBuffer, {0, 1}, 2), {});
  CHECK_THROWS_AS(run(uneven, {{0, {1, 2}}, {1, {3}}}), CheckFailure);
}
