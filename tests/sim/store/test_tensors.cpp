// SPDX-License-Identifier: BSD-3-Clause
// Plans of several tensors, and collectives over boxes of buffers: proof, text, bytes, store and
// engine.
#include <catch2/catch.hpp>

#include <map>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "core/proof/proof.h"
#include "core/text/plan_text.h"
#include "core/traffic/accounting.h"
#include "sim/network/engine.h"
#include "sim/store/store.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/any_planner.h"
#include "tests/support/cases.h"
#include "tests/support/rough_data.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Matchers::Contains;

namespace {

// What every destination rank of every tensor holds, from sources filled with the pattern.
std::vector<Shards> moved(const Plan& plan) {
  sim::Store store({.poison = true});
  std::vector<Shards> sources;
  for (const Request& request : plan.tensors) sources.push_back(pattern_sources(request));
  return test::moved(store, plan, sources);
}

void check_text(const Plan& plan) {
  std::string written = to_text(plan);
  CHECK(to_text(parse_plan(written, "joined")) == written);
}

std::string refuted(const Plan& plan) {
  ProofResult result = check_plan(plan);
  return result.refutation ? result.refutation->what : "proved";
}

// Two tensors of two ranks, of different dtypes and dims, in one step: each rank sends one message
// that carries boxes of both.
Plan two_in_one_message() {
  Plan plan({request_on("2", "4", "S(0)", "S(0)[0]", "f32"),
             request_on("2", "2,2", "S(0)", "S(1)", "bf16")},
            "hand");
  CopyStep own{{{0, {0, 2}}, {1, {2, 2}}}, MoveList(2)};
  ExchangeStep step{{{0, 1, {0, 1}}, {1, 0, {1, 1}}}, MoveList(2)};
  for (std::int64_t rank : {0, 1}) {
    own.moves.push_back(
        {BufferId{0}, BufferId{1}, DimVector{0, 0}, DimVector{0, 0}, DimVector{1, 2}});
    own.moves.push_back(
        {BufferId{2}, BufferId{3}, DimVector{0, rank}, DimVector{rank, 0}, DimVector{1, 1}});
    step.moves.push_back(
        {BufferId{2}, BufferId{3}, DimVector{0, 1 - rank}, DimVector{rank, 0}, DimVector{1, 1}});
  }
  plan.add_step(std::move(own), {});
  plan.add_step(std::move(step), {});
  return plan;
}

}  // namespace

TEST_CASE("a join of joins is the join of all") {
  Plan a = plan_p2p(request_on("2", "4", "S(0)", "R"), {}),
       b = plan_p2p(request_on("2", "2,2", "S(0)", "S(1)"), {}),
       c = plan_p2p(request_on("2", "3", "P(sum)", "R"), {});
  CHECK(to_text(join({join({a, b}), join({c, a})})) == to_text(join({a, b, c, a})));
}

TEST_CASE("joined plans do what each does alone") {
  Topology topology = star(kDrawnRanks);
  PlannerInput input;
  input.topology = &topology;
  int joined_plans = 0, dims_differ = 0, dtypes_differ = 0, collectives = 0;
  for (std::uint64_t seed = 1; joined_plans < 400; ++seed) {
    Prng prng(seed);
    std::vector<Plan> plans;
    while (plans.size() < 2 + seed % 2) {
      std::optional<Request> request = draw_request(prng);
      if (!request) continue;
      plans.push_back(any_plan(prng, *request, input));
    }
    CAPTURE(seed);
    Plan joined = join(plans);
    REQUIRE(refuted(joined) == "proved");
    check_text(joined);
    ++joined_plans;
    dims_differ += plans[0].dims() != plans[1].dims();
    dtypes_differ += plans[0].request().dtype() != plans[1].request().dtype();

    std::map<Rank, std::int64_t> received, peak;
    std::int64_t slowest = 0;
    for (const Plan& plan : plans) {
      PlanBytes bytes = count_bytes(plan);
      for (std::size_t slot = 0; slot < plan.slot_count(); ++slot) {
        received[plan.ranks[slot]] += bytes.received_per_slot[slot];
        peak[plan.ranks[slot]] += bytes.peak_per_slot[slot];
      }
      slowest = std::max(slowest, sim::time_of(plan, topology));
      for (const Step& step : plan.steps)
        collectives += std::holds_alternative<CollectiveStep>(step.body);
    }
    PlanBytes bytes = count_bytes(joined);
    for (std::size_t slot = 0; slot < joined.slot_count(); ++slot) {
      CHECK(bytes.received_per_slot[slot] == received[joined.ranks[slot]]);
      // Temporaries of different plans need not live at the same time.
      CHECK(bytes.peak_per_slot[slot] <= peak[joined.ranks[slot]]);
    }
    // Pipelines may fall into step a little better beside others.
    CHECK(sim::time_of(joined, topology) >= slowest / 100 * 99);

    std::vector<Shards> together = moved(joined);
    for (std::size_t t = 0; t < plans.size(); ++t) REQUIRE(together[t] == moved(plans[t])[0]);
  }
  CHECK(dims_differ > 100);
  CHECK(dtypes_differ > 100);
  CHECK(collectives > 100);
}

TEST_CASE("one message carries boxes of two tensors") {
  Plan plan = two_in_one_message();
  REQUIRE(refuted(plan) == "proved");
  check_text(plan);
  // One bf16 element each way.
  CHECK(count_bytes(plan).received_total == 2 * 2);
  // f32[2] of two shards and bf16[1,2], source and destination.
  CHECK(count_bytes(plan).peak_max == 2 * (2 * 4 + 2 * 2));
  // 2 bytes at 1 GB/s behind a latency of 1 us: 1 us + 2 ns.
  CHECK(sim::time_of(plan, star(2, 1'000'000'000)) == 1'000'000 + 2'000);
  std::vector<Shards> out = moved(plan);
  CHECK(out[0] == moved(join({Plan(plan)}))[0]);
  CHECK(out[0].size() == 2);
  CHECK(out[1].size() == 2);
}

TEST_CASE("what is moved or folded stays within its tensor") {
  Plan plan = two_in_one_message();
  Plan crossed({request_on("2", "2", "R", "R"), request_on("2", "2", "R", "R")}, "hand");
  CopyStep copy{{{0, {0, 1}}}, MoveList(1)};
  copy.moves.push_back({BufferId{0}, BufferId{3}, DimVector{0}, DimVector{0}, DimVector{2}});
  crossed.add_step(copy, {});
  CHECK_THAT(refuted(crossed), Contains("of another tensor"));

  crossed.steps.clear();
  ReduceStep reduce{};
  reduce.operands = {{BufferId{0}, DimVector{0}}, {BufferId{2}, DimVector{0}}};
  reduce.parts = {{0, BufferId{1}, DimVector{0}, DimVector{2}, 0, 2}};
  crossed.add_step(reduce, {});
  CHECK_THAT(refuted(crossed), Contains("of another tensor"));

  crossed.steps.clear();
  CollectiveStep gather{CollectiveKind::AllReduce, ReduceOp::Sum, 1, BufferId{2}, BufferId{1}};
  gather.group_size = 2;
  gather.members = {0, 1};
  crossed.add_step(gather, {});
  CHECK_THAT(refuted(crossed), Contains("of another tensor"));

  // The second tensor's source is as little to be written as the first's.
  crossed.steps.clear();
  copy.moves = MoveList(1);
  copy.moves.push_back({BufferId{3}, BufferId{2}, DimVector{0}, DimVector{0}, DimVector{2}});
  crossed.add_step(copy, {});
  CHECK_THAT(refuted(crossed), Contains("writes the source"));

  // A tensor that nothing moves is missed, whichever it is.
  plan.steps.pop_back();
  CHECK_THAT(refuted(plan), Contains("elements of the destination on rank 0 are never written"));
  CHECK_THROWS_AS(plan.request(), CheckFailure);
}

namespace {

// A collective of two ranks cut into chunks of columns: one step per chunk, each over a box.
Plan in_chunks(CollectiveKind kind, const char* from, const char* to, std::int64_t chunks) {
  Plan plan(request_on("2", "2,8", from, to), "hand");
  std::int64_t width = 8 / chunks;
  for (std::int64_t c = 0; c < chunks; ++c) {
    CollectiveStep step{kind, ReduceOp::Sum, 1, kSourceBuffer, kDestinationBuffer};
    step.group_size = 2;
    step.members = {0, 1};
    auto columns = [&](BufferId buffer) {
      return Box{DimVector{0, c * width},
                 DimVector{plan.buffer(buffer).extent(0, 0), (c + 1) * width}};
    };
    step.input_boxes = {columns(kSourceBuffer)};
    step.output_boxes = {columns(kDestinationBuffer)};
    plan.add_step(std::move(step), {});
  }
  return plan;
}

}  // namespace

TEST_CASE("collectives over boxes do what they do over whole buffers") {
  struct Kind {
    CollectiveKind kind;
    const char *from, *to;
    std::int64_t received;  // by each rank: elements
  };
  for (const Kind& each : {Kind{CollectiveKind::AllGather, "S(0)", "R", 8},
                           Kind{CollectiveKind::ReduceScatter, "P(sum)", "S(0)", 8},
                           Kind{CollectiveKind::AllReduce, "P(sum)", "R", 16}})
    for (std::int64_t chunks : {1, 2, 4}) {
      CAPTURE(text(each.kind), chunks);
      Plan plan = in_chunks(each.kind, each.from, each.to, chunks);
      REQUIRE(refuted(plan) == "proved");
      check_text(plan);
      CHECK(count_bytes(plan).received_max == each.received * 4);
      Topology topology = star(2);
      PlannerInput input;
      input.topology = &topology;
      Plan whole = find_planner("rule").make(plan.request(), input);
      CHECK(count_bytes(whole).received_max == each.received * 4);
      CHECK(moved(plan) == moved(whole));
      CHECK(moved(join({plan, whole}))[0] == moved(whole)[0]);
    }
}

TEST_CASE("boxes of collectives are checked") {
  auto broken = [](auto&& change) {
    Plan plan = in_chunks(CollectiveKind::AllGather, "S(0)", "R", 2);
    change(std::get<CollectiveStep>(plan.steps[1].body));
    return refuted(plan);
  };
  CHECK(broken([](CollectiveStep&) {}) == "proved");
  CHECK_THAT(broken([](CollectiveStep& step) { step.input_boxes[0].hi[1] = 9; }),
             Contains("outside buffer 0"));
  CHECK_THAT(broken([](CollectiveStep& step) { step.output_boxes[0].lo[0] = -1; }),
             Contains("outside buffer 1"));
  CHECK_THAT(broken([](CollectiveStep& step) { step.input_boxes[0].hi[1] = 7; }),
             Contains("has blocks of shape (1,3) in its input and (1,4) in its output"));
  CHECK_THAT(broken([](CollectiveStep& step) {
               step.output_boxes[0].lo[1] = 3;
               step.output_boxes[0].hi[1] = 7;
             }),
             Contains("writes"));
  CHECK_THAT(broken([](CollectiveStep& step) {
               step.input_boxes[0].lo[1] = 3;
               step.input_boxes[0].hi[1] = 7;
             }),
             Contains("holds the elements at"));
  CHECK_THAT(broken([](CollectiveStep& step) { step.output_boxes.clear(); }),
             Contains("boxes for only some of its groups"));
  CHECK_THAT(broken([](CollectiveStep& step) {
               step.input_boxes[0] = Box{DimVector{0}, DimVector{1}};
             }),
             Contains("boxes with other dims"));
  CHECK_THAT(broken([](CollectiveStep& step) { step.output_dim = 1; }), Contains("dim 1"));
}
