// SPDX-License-Identifier: BSD-3-Clause
// Plans: dependencies per rank and without a barrier, steps that take no time, collectives by their
// default expansion.
#include <catch2/catch.hpp>

#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Timeline run_plan(const Plan& plan, const Topology& topology) {
  return sim::run(workload_of(std::make_shared<const Plan>(plan)), topology, {true, true});
}

Span span(std::int32_t step, std::int32_t rank, std::int64_t start_ps, std::int64_t end_ps) {
  return {OpId{0}, step, Rank{rank}, start_ps, end_ps};
}

}  // namespace

TEST_CASE("an exchange is done on a rank when its own messages are") {
  // 0 -> 1 ten bytes, 2 -> 3 thirty: nothing shared.
  Plan plan = empty_plan(4);
  plan.add_step(exchange({{0, 1, 10}, {2, 3, 30}}), {});
  Timeline t = run_plan(plan, switched(4, kGB, 500));
  CHECK(t.spans == std::vector<Span>{span(0, 0, 0, 10'500), span(0, 1, 0, 10'500),
                                     span(0, 2, 0, 30'500), span(0, 3, 0, 30'500)});
  CHECK(t.end_ps == sim::time_of(plan, switched(4, kGB, 500)));
}

TEST_CASE("there is no barrier between steps: each rank goes on by itself") {
  // Step 1 depends on step 0. Ranks 0 and 1 are done with step 0 at 10,000 and go on; 2 and 3 at
  // 30,000.
  Plan plan = empty_plan(4);
  StepId first = plan.add_step(exchange({{0, 1, 10}, {2, 3, 30}}), {});
  plan.add_step(exchange({{0, 1, 5}, {2, 3, 5}}), {first});
  Timeline t = run_plan(plan, switched(4, kGB));
  CHECK(t.spans[4] == span(1, 0, 10'000, 15'000));
  CHECK(t.spans[6] == span(1, 2, 30'000, 35'000));
  CHECK(t.end_ps == 35'000);
}

TEST_CASE("a step in which a rank has no part is passed over, not waited through") {
  // Step 1 (on rank 0 only) depends on step 0; step 2 names step 1 only. Rank 1 has no part in step
  // 1, so its part of step 2 starts at once; the message needs both.
  Plan plan = empty_plan(4);
  StepId first = plan.add_step(exchange({{0, 3, 10}}), {});
  StepId second = plan.add_step(copies({0}), {first});
  plan.add_step(exchange({{0, 1, 5}, {1, 2, 7}}), {second});
  Timeline t = run_plan(plan, switched(4, kGB));
  CHECK(t.spans == std::vector<Span>{span(0, 0, 0, 10'000), span(0, 3, 0, 10'000),
                                     span(1, 0, 10'000, 10'000), span(2, 0, 10'000, 15'000),
                                     span(2, 1, 0, 15'000), span(2, 2, 0, 7'000)});
}

TEST_CASE("steps without dependencies share the wire") {
  // Two exchanges over the same pair: 10 bytes each at half the rate.
  Plan plan = empty_plan(2);
  plan.add_step(exchange({{0, 1, 10}}), {});
  plan.add_step(exchange({{0, 1, 10}}), {});
  CHECK(run_plan(plan, switched(2, kGB)).end_ps == 20'000);
}

TEST_CASE("copy, fill and reduce leave spans of no length at the right time") {
  Plan plan = empty_plan(2);
  StepId sent = plan.add_step(exchange({{0, 1, 10}}), {});
  StepId filled = plan.add_step(FillStep{{{1, kDestinationBuffer, Box{{0}, {1}}}}}, {sent});
  ReduceStep reduce;
  reduce.parts = {{1, kDestinationBuffer, {0}, {1}, 0, 1}};
  reduce.operands = {{kSourceBuffer, {0}}};
  plan.add_step(reduce, {filled});
  plan.add_step(copies({0, 1}), {});
  Timeline t = run_plan(plan, switched(2, kGB));
  CHECK(t.spans[2] == span(1, 1, 10'000, 10'000));
  CHECK(t.spans[3] == span(2, 1, 10'000, 10'000));
  CHECK(t.spans[4] == span(3, 0, 0, 0));
  CHECK(t.spans[5] == span(3, 1, 0, 0));
}

TEST_CASE("a plan's collective runs by its default expansion in every group at once") {
  // all_gather of 16 bytes per rank in groups {0,1} and {2,3}: one round of 16 bytes, both at the
  // full rate.
  Plan plan = empty_plan(4);
  CollectiveStep step{CollectiveKind::AllGather,
                      ReduceOp::Sum,
                      1,
                      kSourceBuffer,
                      kDestinationBuffer,
                      0,
                      0,
                      2,
                      {0, 1, 2, 3}};
  plan.add_step(step, {});
  Timeline t = run_plan(plan, switched(4, kGB, 100));
  CHECK(t.end_ps == 16'100);
  REQUIRE(t.flows.size() == 4);
  CHECK(t.flows[0] == FlowSpan{OpId{0}, 0, Rank{0}, Rank{1}, 16, 0, 16'100});
  CHECK(t.flows[3] == FlowSpan{OpId{0}, 0, Rank{3}, Rank{2}, 16, 0, 16'100});
}

TEST_CASE("element counts of a collective follow its kind and dtype") {
  // f32 on 4 ranks: all_to_all of 16 elements per rank sends 3 blocks of 4 elements, 16 bytes, at a
  // third of the port each: 48,000 + 2 (1/3 does not divide).
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({4}));
  Plan plan(
      Request(parse_layout("8,8", "f32", mesh, "S(0)"), parse_layout("8,8", "f32", mesh, "S(1)")),
      "test");
  plan.add_step(CollectiveStep{CollectiveKind::AllToAll,
                               ReduceOp::Sum,
                               1,
                               kSourceBuffer,
                               kDestinationBuffer,
                               1,
                               0,
                               4,
                               {0, 1, 2, 3}},
                {});
  CHECK(sim::time_of(plan, switched(4, kGB)) == transfer_ps(16, 333'333'333));
  // reduce_scatter: 3 rounds of the output, 16 elements = 64 bytes.
  Plan scatter(
      Request(parse_layout("8,8", "f32", mesh, "P(sum)"), parse_layout("8,8", "f32", mesh, "S(0)")),
      "test");
  scatter.add_step(CollectiveStep{CollectiveKind::ReduceScatter,
                                  ReduceOp::Sum,
                                  1,
                                  kSourceBuffer,
                                  kDestinationBuffer,
                                  0,
                                  0,
                                  4,
                                  {0, 1, 2, 3}},
                   {});
  CHECK(sim::time_of(scatter, switched(4, kGB)) == 3 * 64'000);
  // all_reduce: 6 rounds of a quarter of 64 elements.
  Plan reduce(
      Request(parse_layout("8,8", "f32", mesh, "P(sum)"), parse_layout("8,8", "f32", mesh, "R")),
      "test");
  reduce.add_step(CollectiveStep{CollectiveKind::AllReduce,
                                 ReduceOp::Sum,
                                 1,
                                 kSourceBuffer,
                                 kDestinationBuffer,
                                 0,
                                 0,
                                 4,
                                 {0, 1, 2, 3}},
                  {});
  CHECK(sim::time_of(reduce, switched(4, kGB)) == 6 * 64'000);
}

TEST_CASE("a plan without steps takes no time and its ranks pass on") {
  Workload w = workload_of(std::make_shared<const Plan>(empty_plan(2)));
  w.operations.push_back({Compute{ranks(2), 5}, 0, {OpId{0}}});
  Timeline t = sim::run(w, switched(2, kGB));
  CHECK(t.end_ps == 5);
  CHECK(t.spans.size() == 2);
}

TEST_CASE(
    "a plan's operation is complete when all its ranks are, and a rank's stream when its own parts "
    "are") {
  // After the plan: rank 0 goes on at 10,000 on its stream; the compute that comes after the
  // operation at 30,000.
  Plan plan = empty_plan(4);
  plan.add_step(exchange({{0, 1, 10}, {2, 3, 30}}), {});
  Workload w = workload_of(std::make_shared<const Plan>(plan));
  w.operations.push_back({Compute{ranks(1), 1}, 0, {}});
  w.operations.push_back({Compute{ranks(1, 1), 1}, 1, {OpId{0}}});
  Timeline t = sim::run(w, switched(4, kGB));
  CHECK(t.spans[4] == Span{OpId{1}, -1, Rank{0}, 10'000, 10'001});
  CHECK(t.spans[5] == Span{OpId{2}, -1, Rank{1}, 30'000, 30'001});
}
