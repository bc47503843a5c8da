// SPDX-License-Identifier: BSD-3-Clause
// Faults of real machines: operations that never end, errors that are reported later, ranks that
// die, and memory that is missing. All ranks must end soon and say why.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>

#include "core/base/errors.h"
#include "core/plan/plan.h"
#include "core/planners/planner.h"
#include "tests/conformance/conformance.h"
#include "tests/core/planners/planner_cases.h"
#include "tests/support/standins/nccl_ranks.h"

namespace reshard::test {
namespace {

using namespace reshard::backends::nccl;
using Catch::Matchers::Contains;
using std::chrono::milliseconds;

void fill_with_zero(PreparedPlan& prepared) {
  prepared.fill([](Rank, std::span<std::byte> bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  });
}

StandinOutcome run_plan(StandinJob job, const Plan& plan, int runs = 1) {
  return run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
    fill_with_zero(*prepared);
    for (int i = 0; i < runs; ++i) prepared->run();
  });
}

bool any_contains(const StandinOutcome& outcome, const std::string& text) {
  return std::any_of(outcome.errors.begin(), outcome.errors.end(), [&](const std::string& error) {
    return error.find(text) != std::string::npos;
  });
}

TEST_CASE("an operation that never ends is aborted at the time limit, by all ranks") {
  Plan exchange = planned_on_star(4, "S(0)", "S(1)", "p2p"),
       collective = planned_on_star(4, "P(sum)", "S(0)", "rule");
  for (Drive drive : {Drive::RankPerThread, Drive::OneThread})
    for (const Plan* plan : {&exchange, &collective}) {
      StandinJob job;
      job.world = 4;
      job.drive = drive;
      job.limit = milliseconds(300);
      job.standin.faults = {{NcclFault::Kind::Never, 1, 0}};
      auto start = std::chrono::steady_clock::now();
      StandinOutcome outcome = run_plan(job, *plan);
      INFO(outcome.text());
      CHECK(std::chrono::steady_clock::now() - start < milliseconds(15'000));
      CHECK(outcome.misuse.empty());
      for (const std::string& error : outcome.errors) CHECK_FALSE(error.empty());
      CHECK(any_contains(outcome, "not done within 300ms"));
      CHECK(any_contains(outcome,
                         plan == &exchange ? "(exchange) of rank " : "(reduce_scatter) of rank "));
      CHECK(any_contains(outcome, plan == &exchange ? "over communicator all with ranks "
                                                    : "over communicator all with ranks 0,1,2,3"));
      CHECK(outcome.live_handles == 0);
    }
}

TEST_CASE("an asynchronous error ends all ranks with NCCL's words") {
  Plan plan = planned_on_star(4, "S(0)", "S(1)", "p2p");
  for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
    StandinJob job;
    job.world = 4;
    job.drive = drive;
    job.standin.faults = {{NcclFault::Kind::AsyncError, 2, 1}};
    StandinOutcome outcome = run_plan(job, plan, 3);
    INFO(outcome.text());
    CHECK(outcome.misuse.empty());
    for (const std::string& error : outcome.errors) CHECK_FALSE(error.empty());
    CHECK(any_contains(
        outcome, "communicator all of rank 2 reports: stand-in error 6 (as the test wants it)"));
    CHECK(outcome.live_handles == 0);
  }
}

TEST_CASE("a rank that dies ends the others") {
  Plan plan = planned_on_star(4, "S(0)", "S(1)", "p2p");
  StandinJob job;
  job.world = 4;
  StandinOutcome outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t driver) {
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
    fill_with_zero(*prepared);
    prepared->run();
    if (driver == 3) throw std::runtime_error("killed");
    prepared->run();
  });
  INFO(outcome.text());
  CHECK(outcome.misuse.empty());
  CHECK(outcome.errors[3] == "killed");
  for (std::size_t r = 0; r < 3; ++r) CHECK_FALSE(outcome.errors[r].empty());
  CHECK(any_contains(outcome, "rank 3 failed"));
}

TEST_CASE("after an abort nothing can be used, and the first reason is reported again") {
  Plan plan = planned_on_star(2, "S(0)", "S(1)", "p2p");
  StandinJob job;
  job.world = 2;
  job.drive = Drive::OneThread;
  job.limit = milliseconds(200);
  job.standin.faults = {{NcclFault::Kind::Never, 0, 0}};
  std::vector<std::string> errors;
  auto attempt = [&](const std::function<void()>& body) {
    try {
      body();
      errors.emplace_back("nothing thrown");
    } catch (const BackendError& error) {
      errors.emplace_back(error.what());
    }
  };
  StandinOutcome outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
    fill_with_zero(*prepared);
    attempt([&] { prepared->run(); });
    attempt([&] { prepared->run(); });
    attempt([&] { fill_with_zero(*prepared); });
    attempt([&] { prepared->take([](Rank, std::span<const std::byte>) {}); });
    attempt([&] { executor.prepare(plan); });
  });
  INFO(outcome.text());
  CHECK(outcome.misuse.empty());
  REQUIRE(errors.size() == 5);
  CHECK_THAT(errors[0], Contains("not done within 200ms"));
  for (std::size_t i = 1; i < errors.size(); ++i)
    CHECK_THAT(errors[i], Contains("aborted") && Contains("the first error was: " + errors[0]));
}

TEST_CASE("slow operations, slow connections and older versions change no byte") {
  struct Row {
    int version, in_progress_polls;
    bool slow, declared_order;
  };
  for (const Row& row :
       {Row{22809, 0, true, false}, Row{22809, 3, false, false}, Row{21400, 0, false, false},
        Row{21800, 2, false, false}, Row{23007, 0, false, true}})
    for (Drive drive : {Drive::RankPerThread, Drive::OneThread}) {
      StandinJob job;
      job.world = 6;
      job.drive = drive;
      job.standin.version = row.version;
      job.standin.in_progress_polls = row.in_progress_polls;
      job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
      job.declared_order = row.declared_order;
      if (row.slow)
        job.standin.faults = {{NcclFault::Kind::Slow, 1, 3},
                              {NcclFault::Kind::Slow, 4, 5},
                              {NcclFault::Kind::Slow, 0, 9}};
      ConformanceReport report;
      StandinOutcome outcome =
          run_on_standin(job, [&](NcclExecutor& executor, std::int32_t driver) {
            ConformanceOptions options;
            options.world = 6;
            options.draws = 60;
            options.seed = 5;
            ConformanceReport mine = check_conformance(executor, options);
            if (driver == 0) report = mine;
          });
      CAPTURE(row.version, row.in_progress_polls, row.slow);
      INFO(outcome.text());
      INFO(text(report));
      CHECK(outcome.clean());
      CHECK(report.failed == 0);
      CHECK(report.requests == 60);
    }
}

TEST_CASE(
    "NCCL's own order of sums is owned up to, and left where the declared order is asked for") {
  Plan sum = planned_on_star(4, "P(sum)", "R", "rule"),
       largest = planned_on_star(4, "P(max)", "R", "rule"),
       pair = planned_on_star(2, "P(sum)", "R", "rule"),
       integers = planned_on_star(4, "P(sum)", "R", "rule", "16,16", "i32");
  for (bool declared : {false, true}) {
    StandinJob job;
    job.world = 4;
    job.drive = Drive::OneThread;
    job.declared_order = declared;
    StandinOutcome outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
      RESHARD_CHECK(executor.folds_in_own_order(sum) == !declared, "a sum of four");
      RESHARD_CHECK(!executor.folds_in_own_order(largest), "a maximum");
      RESHARD_CHECK(!executor.folds_in_own_order(integers),
                    "a sum of integers, which is exact in any order");
      RESHARD_CHECK(!executor.folds_in_own_order(pair), "a sum of two, which has one order");
    });
    INFO(outcome.text());
    CHECK(outcome.clean());
  }
}

TEST_CASE("a plan that does not fit is refused by all ranks before anything is taken") {
  StandinJob job;
  job.world = 3;
  job.standin.memory_bytes = 1 << 16;
  Plan large = planned_on_star(3, "S(0)", "S(1)", "p2p", "256,256"),
       small = planned_on_star(3, "S(0)", "S(1)", "p2p"),
       wide = planned_on_star(4, "S(0)", "S(1)", "p2p");
  std::atomic<int> refused{0}, too_many{0};
  StandinOutcome outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
    try {
      executor.prepare(large);
    } catch (const InputError& error) {
      refused += std::string(error.what()).find("plan: rank 0 needs ") == 0;
    }
    try {
      executor.prepare(wide);
    } catch (const InputError& error) {
      too_many += std::string(error.what()) == "plan: it names rank 3, but the job has 3 ranks";
    }
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(small);
    fill_with_zero(*prepared);
    prepared->run();
  });
  INFO(outcome.text());
  CHECK(outcome.clean());
  CHECK(refused == 3);
  CHECK(too_many == 3);
}

TEST_CASE("a run's spans are one per step and rank, in order of time on each rank") {
  Plan plan = planned_on_star(4, "P(sum)", "S(1)", "hybrid");
  StandinJob job;
  job.world = 4;
  job.drive = Drive::OneThread;
  Timeline timeline;
  StandinOutcome outcome = run_on_standin(job, [&](NcclExecutor& executor, std::int32_t) {
    std::unique_ptr<PreparedPlan> prepared = executor.prepare(plan);
    fill_with_zero(*prepared);
    prepared->run();
    timeline = prepared->run();
  });
  CHECK(outcome.clean());
  std::vector<std::pair<std::int32_t, Rank>> expected, found;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (Slot slot : slots_of(plan.steps[s]))
      expected.emplace_back(static_cast<std::int32_t>(s),
                            plan.ranks[static_cast<std::size_t>(slot)]);
  std::map<Rank, std::int64_t> last;
  for (const Span& span : timeline.spans) {
    found.emplace_back(span.step, span.rank);
    CHECK(span.start_ps >= last[span.rank]);
    CHECK(span.end_ps > span.start_ps);
    CHECK(span.end_ps <= timeline.end_ps);
    last[span.rank] = span.end_ps;
  }
  CHECK(found == expected);
}

}  // namespace
}  // namespace reshard::test
