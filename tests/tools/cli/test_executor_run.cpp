// SPDX-License-Identifier: BSD-3-Clause
// Values and times of a run on one process and on several, with correct executors and with
// executors that corrupt their results.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "core/plan/join.h"
#include "core/planners/planner.h"
#include "tests/support/split_store.h"
#include "tests/support/star.h"
#include "tests/support/threaded_processes.h"
#include "tools/cli/validate/executor_run.h"

using namespace reshard;
using namespace reshard::tools;

namespace {

Plan plan_of(const Request& request, const char* planner = "p2p") {
  Topology topology = test::star(8);
  PlannerInput input;
  input.topology = &topology;
  return find_planner(planner).make(request, input);
}

// f32[6,4] S(0) -> S(1) on four ranks.
Request request_64() {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({4}));
  Shape shape{6, 4};
  return Request(Layout(shape, DType::F32, mesh, {Placement::shard(0)}),
                 Layout(shape, DType::F32, mesh, {Placement::shard(1)}));
}

struct Seen {
  std::vector<Timeline> runs;
  sim::ValueFacts values;
  std::string failure;
};

// What the root sees.
Seen validated(const Plan& plan, int processes, const test::Corruption& corruption = {},
               bool loses_spans = false) {
  test::ThreadedGroup group(processes);
  Seen out;
  test::run_processes(group, [&](test::ThreadedProcesses& mine) {
    try {
      sim::PlanPatterns patterns(plan);
      test::SplitPrepared prepared(plan, mine, corruption,
                                   loses_spans && mine.index() == mine.count() - 1);
      patterns.fill(prepared);
      std::vector<Timeline> own = timed_runs(prepared, {1, 3});
      CheckedShards checked = checked_shards(prepared, plan, patterns);
      std::vector<sim::ShardFacts> shards = gathered_shards(mine, plan, checked.shards);
      if (mine.is_root()) out.values.shards = shards;
      std::vector<Timeline> runs = gathered_runs(mine, plan, own);
      if (mine.is_root()) out.runs = runs;
    } catch (const CheckFailure& failure) {
      if (mine.is_root()) out.failure = failure.what();
      mine.abort(3);
    }
  });
  compare_with_store(plan, nullptr, 1 << 20, 1 << 30, out.values);
  return out;
}

}  // namespace

TEST_CASE("right values hold on any number of processes, with the digest of the simulation") {
  Plan plan = plan_of(request_64());
  Seen alone = validated(plan, 1);
  REQUIRE(alone.values.digest.has_value());
  for (int processes : {1, 2, 3, 4, 7}) {
    Seen seen = validated(plan, processes);
    CHECK(seen.values.hold());
    CHECK(seen.values.store_ran);
    CHECK(seen.values.elements() == 24);
    CHECK(seen.values.shards.size() == 4);
    CHECK(seen.values.digest == alone.values.digest);
    CHECK(seen.values.digest_of_digests() == alone.values.digest_of_digests());
  }
}

TEST_CASE("one wrong element on one process of several is found, with rank, index and bits") {
  Request request = request_64();
  Plan plan = plan_of(request);
  // Rank 2 holds column 2; its element 3 is [3,2], global index 14.
  Seen seen = validated(plan, 3, {{Rank{2}, {3}}});
  CHECK_FALSE(seen.values.hold());
  CHECK((seen.values.wrong() == 1 && seen.values.unlike_store() == 1));
  CHECK_FALSE(seen.values.digest.has_value());
  std::uint64_t right = Pattern(request).source_bits(14, 0);
  for (const sim::ShardFacts& shard : seen.values.shards) {
    CHECK(shard.wrong.has_value() == (shard.rank == Rank{2}));
    if (!shard.wrong) continue;
    CHECK((shard.wrong->count == 1 && shard.wrong->index == 14 && shard.wrong->expected == right &&
           shard.wrong->found == (right ^ 1)));
  }
}

TEST_CASE("of several wrong elements the first is named, by rank and then index") {
  Request request = request_64();
  Plan plan = plan_of(request);
  Seen seen = validated(plan, 2, {{Rank{3}, {0}}, {Rank{1}, {4, 2, 5}}});
  CHECK(seen.values.wrong() == 4);
  sim::ValidateReport report{sim::RunReport(plan.tensors, plan.ranks)};
  report.values = seen.values;
  std::vector<std::string> faults = sim::faults_of(report);
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].rfind("values of " + request.text() +
                            ": rank 1 holds a wrong value at global index [2,1]: expected 0x",
                        0) == 0);
  CHECK(faults[0].find("(3 of its elements are wrong, 4 on all ranks)") != std::string::npos);
  CHECK(faults[1].rfind("values of " + request.text() + ": rank 1's shard has digest ", 0) == 0);
  CHECK(faults[1].find("(2 of 4 shards differ)") != std::string::npos);
}

TEST_CASE("shards of several tensors are gathered by tensor and rank, and each is its own") {
  Request first = request_64();
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({2}, Rank{2}));
  Request second(Layout({3}, DType::I16, mesh, {Placement::shard(0)}),
                 Layout({3}, DType::I16, mesh, {Placement::replicate()}));
  Plan plan = join({plan_of(first), plan_of(second)});
  Seen alone = validated(plan, 1);
  REQUIRE(alone.values.digest.has_value());
  for (int processes : {1, 3, 4}) {
    Seen seen = validated(plan, processes);
    CHECK(seen.values.hold());
    CHECK(seen.values.elements() == 24 + 2 * 3);
    REQUIRE(seen.values.shards.size() == 4 + 2);
    CHECK((seen.values.shards[4].tensor == TensorId{1} && seen.values.shards[4].rank == Rank{2}));
    CHECK(seen.values.digest == alone.values.digest);
  }
  Seen seen = validated(plan, 2, {{Rank{3}, {2}}, {Rank{2}, {1, 2}}});
  sim::ValidateReport report{sim::RunReport(plan.tensors, plan.ranks)};
  report.values = seen.values;
  CHECK((seen.values.wrong() == 3 && seen.values.unlike_store() == 2));
  std::vector<std::string> faults = sim::faults_of(report);
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].rfind("values of tensor 1, " + second.text() +
                            ": rank 2 holds a wrong value at global index [1]: expected 0x",
                        0) == 0);
  CHECK(faults[1].rfind("values of tensor 1, " + second.text() + ": rank 2's shard has digest ",
                        0) == 0);
}

TEST_CASE("folds are checked against what the request defines") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({4}));
  Shape shape{8};
  Request request(Layout(shape, DType::BF16, mesh, {Placement::partial()}),
                  Layout(shape, DType::BF16, mesh, {Placement::replicate()}));
  for (const char* planner : {"p2p", "rule"}) {
    Plan plan = plan_of(request, planner);
    CHECK(validated(plan, 2).values.hold());
    CHECK(validated(plan, 2, {{Rank{0}, {7}}}).values.wrong() == 1);
  }
}

TEST_CASE("runs of all processes are one: every part has its span, the last process ends it") {
  Plan plan = plan_of(request_64());
  Seen one = validated(plan, 1), three = validated(plan, 3);
  REQUIRE(three.runs.size() == 3);
  std::size_t parts = 0;
  for (const Step& step : plan.steps) parts += slots_of(step).size();
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(three.runs[i].spans.size() == parts);
    CHECK(three.runs[i].spans == one.runs[i].spans);
    CHECK(three.runs[i].end_ps == one.runs[i].end_ps);
  }
  CHECK(validated(plan, 2, {}, true).failure.find("not those of the plan's parts") !=
        std::string::npos);
}

TEST_CASE("a plan above the data budget is not run in the store, and the facts say so") {
  Plan plan = plan_of(request_64());
  sim::ValueFacts facts = validated(plan, 1).values;
  sim::ValueFacts fresh;
  fresh.shards = facts.shards;
  for (sim::ShardFacts& shard : fresh.shards) shard.expected.reset();
  compare_with_store(plan, nullptr, 100, 1 << 30, fresh);
  CHECK_FALSE(fresh.store_ran);
  CHECK(fresh.note == "it needs 192 B, above the data budget of 100 B");
  compare_with_store(plan, nullptr, 1 << 20, 100, fresh);
  CHECK(fresh.note == "it needs 192 B, above the memory of 100 B");
  CHECK(fresh.hold());
}
