// SPDX-License-Identifier: BSD-3-Clause
// Plans on a caller's communicator, stream and buffers, one thread per rank: compared with the
// store bit for bit, several plans at once, and with faults.
#include <catch2/catch.hpp>

#include <algorithm>
#include <mutex>
#include <set>

#include "core/base/errors.h"
#include "core/plan/plan.h"
#include "core/planners/planner.h"
#include "tests/backends/nccl/caller_rank.h"
#include "tests/conformance/conformance.h"
#include "tests/core/planners/planner_cases.h"

namespace reshard::test {
namespace {

using namespace reshard::backends::nccl;
using Catch::Matchers::Contains;

StandinOutcome run_callers(const StandinJob& job,
                           const std::function<void(CallerRank& rank)>& body) {
  return run_parts(job, [&](StandinParts parts, std::int32_t driver) {
    CallerRank rank(std::move(parts), driver, job.world);
    body(rank);
  });
}

TEST_CASE("drawn requests on callers' buffers end with the store's bytes") {
  struct Row {
    int version, polls;
    bool over_parent;
  };
  // 2.14.0 has no splits: ids travel over the communicator itself.
  for (const Row& row : {Row{22809, 0, true}, Row{22809, 0, false}, Row{21400, 0, false},
                         Row{22809, 2, true}, Row{23007, 2, false}})
    for (std::int32_t world : {2, 5, 8}) {
      StandinJob job;
      job.world = world;
      job.limit = std::chrono::seconds(20);
      job.standin.version = row.version;
      job.standin.in_progress_polls = row.polls;
      if (!row.over_parent) job.standin.multiprocessors = kMaxStreams * kBlocksOfKernel;
      job.standin.seed = static_cast<std::uint64_t>(world);
      ConformanceReport report;
      std::mutex mutex;
      StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
        {
          Job made = rank.job(job.limit);
          made.over_parent = row.over_parent;
          CallerExecutor executor(rank, std::move(made));
          ConformanceOptions options;
          options.world = world;
          options.draws = 60;
          options.seed = 4000 + static_cast<std::uint64_t>(world);
          ConformanceReport mine = check_conformance(executor, options);
          std::lock_guard lock(mutex);
          if (rank.raw->rank == 0) report = mine;
        }
        rank.use_and_close();
      });
      CAPTURE(row.version, row.polls, row.over_parent, world);
      INFO(outcome.text());
      INFO(text(report));
      CHECK(outcome.clean());
      CHECK(report.failed == 0);
      CHECK(report.requests == 60);
      CHECK(report.runs > report.requests);
      if (row.over_parent) CHECK(outcome.communicators == 1);
    }
}

TEST_CASE("ranks with different plans are refused on every rank, and all go on") {
  Plan plan = planned_on_star(4, "S(0)", "S(1)", "p2p"),
       other = planned_on_star(4, "S(0)", "R", "p2p");
  StandinJob job;
  job.world = 4;
  std::vector<std::string> said(4);
  StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
    {
      const Plan& mine = rank.raw->rank == 2 ? other : plan;
      CallerPlan buffers(mine, *rank.device, rank.raw->rank),
          right(plan, *rank.device, rank.raw->rank);
      NcclExecutor executor(rank.job(job.limit));
      try {
        executor.prepare(mine, buffers.shards());
      } catch (const InputError& error) {
        said[static_cast<std::size_t>(rank.raw->rank)] = error.what();
      }
      executor.prepare(plan, right.shards())->enqueue();
    }
    rank.use_and_close();
  });
  INFO(outcome.text());
  CHECK(outcome.clean());
  for (const std::string& each : said)
    CHECK(each ==
          "plan: expected the same on all ranks, found a different one on rank 2 than on rank 0: "
          "destination placements R, where rank 0 has S(1)");
}

// Every element of the destination has this value, whatever the layout.
bool all_are(CallerRank& rank, const CallerPlan& buffers, std::int32_t value) {
  std::vector<std::int32_t> host(buffers.destination().bytes().size() / sizeof value);
  if (host.empty()) return true;
  rank.device->download(std::as_writable_bytes(std::span(host)),
                        buffers.destination().bytes().data(), rank.lent.stream);
  rank.raw->wait();
  return std::all_of(host.begin(), host.end(), [&](std::int32_t found) { return found == value; });
}

void set_all(CallerRank& rank, const CallerPlan& buffers, std::int32_t value) {
  std::vector<std::int32_t> host(buffers.source().bytes().size() / sizeof value, value);
  if (host.empty()) return;
  rank.device->upload(buffers.source().bytes().data(), std::as_bytes(std::span(host)),
                      rank.lent.stream);
  rank.raw->wait();
}

TEST_CASE("plans on one communicator take turns and share its splits") {
  Plan turn = planned_on_star(4, "S(0)", "S(1)", "p2p", "16,16", "i32"),
       sum = planned_on_star(4, "P(sum)", "S(0)", "rule", "16,16", "i32"),
       part = planned_on_star(2, "P(sum)", "R", "rule", "16,16", "i32");
  for (bool over_parent : {true, false}) {
    StandinJob job;
    job.world = 4;
    std::set<std::int32_t> wrong;
    std::mutex mutex;
    StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
      bool right = true;
      {
        CallerPlan for_turn(turn, *rank.device, rank.raw->rank),
            for_sum(sum, *rank.device, rank.raw->rank),
            for_part(part, *rank.device, rank.raw->rank);
        Job made = rank.job(job.limit);
        made.over_parent = over_parent;
        NcclExecutor executor(std::move(made));
        auto turns = executor.prepare(turn, for_turn.shards());
        auto sums = executor.prepare(sum, for_sum.shards());
        auto parts = executor.prepare(part, for_part.shards());  // ranks 2 and 3 have no shards
        auto again = executor.prepare(part, for_part.shards());
        for (std::int32_t round = 1; round < 4; ++round) {
          set_all(rank, for_turn, round);
          set_all(rank, for_sum, 10 * round);
          set_all(rank, for_part, 100 * round);
          turns->enqueue();
          sums->enqueue();
          sums->enqueue();  // a run depends on no earlier one
          turns->enqueue();
          parts->enqueue();
          again->enqueue();
          right = right && all_are(rank, for_turn, round) && all_are(rank, for_sum, 40 * round) &&
                  all_are(rank, for_part, 200 * round);
        }
        turns->wait();
        parts->enqueue();  // under way when all goes
      }
      rank.use_and_close();
      std::lock_guard lock(mutex);
      if (!right) wrong.insert(rank.raw->rank);
    });
    CAPTURE(over_parent, wrong);
    INFO(outcome.text());
    CHECK(outcome.clean());
    CHECK(wrong.empty());
    CHECK(outcome.communicators == (over_parent ? 1 : 2));
  }
}

TEST_CASE("an error that one rank finds reaches all ranks, and they go on") {
  Plan plan = planned_on_star(3, "S(0)", "S(1)", "p2p"),
       wide = planned_on_star(4, "S(0)", "S(1)", "p2p");
  StandinJob job;
  job.world = 3;
  std::vector<std::string> found;
  std::mutex mutex;
  StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
    std::vector<std::string> mine;
    {
      CallerPlan buffers(plan, *rank.device, rank.raw->rank);
      NcclExecutor executor(rank.job(job.limit));
      auto refused = [&](const Plan& what, const CallerShards& shards) {
        try {
          executor.prepare(what, std::span(&shards, 1));
          mine.emplace_back("nothing thrown");
        } catch (const InputError& error) {
          mine.emplace_back(error.what());
        }
      };
      bool odd = rank.raw->rank == 1;
      CallerShards shards = buffers.shards()[0], changed = shards;
      if (odd) changed.source = changed.source.first(4);
      refused(plan, changed);
      changed = shards;
      if (odd) changed.destination = {};
      refused(plan, changed);
      changed = shards;
      if (odd) changed.source = {shards.source.data() + 1, shards.source.size()};
      refused(plan, changed);
      changed = shards;
      if (odd) changed.source = {shards.destination.data() + 4, shards.source.size()};
      refused(plan, changed);
      refused(wide, shards);
      executor.prepare(plan, buffers.shards())->enqueue();
    }
    rank.use_and_close();
    std::lock_guard lock(mutex);
    found.insert(found.end(), mine.begin(), mine.end());
  });
  INFO(outcome.text());
  CHECK(outcome.clean());
  std::set<std::string> different(found.begin(), found.end());
  CHECK(found.size() == 15);
  CHECK(different.size() == 5);
  for (const char* text : {"rank 1: source: expected ", "rank 1: destination: expected ",
                           "rank 1: source: expected an address aligned to its elements of 4 bytes",
                           "rank 1: destination: expected memory separate from the source's",
                           "plan: it names rank 3, but the job has 3 ranks"}) {
    CAPTURE(text, different);
    CHECK(std::any_of(different.begin(), different.end(),
                      [&](const std::string& one) { return one.find(text) == 0; }));
  }
}

TEST_CASE("temporaries that do not fit are refused by all ranks before anything is taken") {
  Plan plan = planned_on_star(3, "S(0)", "S(1)", "p2p", "96,96");
  StandinJob job;
  job.world = 3;
  job.standin.memory_bytes = 1 << 17;
  std::vector<std::string> found;
  std::mutex mutex;
  StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
    std::string error_text = "nothing thrown";
    {
      CallerPlan buffers(plan, *rank.device, rank.raw->rank);
      NcclExecutor executor(rank.job(job.limit));
      backends::DeviceMemory rest(*rank.device,
                                  rank.raw->rank == 2 ? rank.device->free_bytes() - 4096 : 256);
      std::int64_t before = rank.device->free_bytes();
      try {
        executor.prepare(plan, buffers.shards());
      } catch (const InputError& error) {
        error_text = error.what();
      }
      RESHARD_CHECK(rank.device->free_bytes() == before, "nothing is taken");
    }
    rank.use_and_close();
    std::lock_guard lock(mutex);
    found.push_back(error_text);
  });
  INFO(outcome.text());
  CHECK(outcome.clean());
  REQUIRE(found.size() == 3);
  for (const std::string& one : found)
    CHECK_THAT(one, Contains("plan: rank 2 needs ") && Contains("4.000 KiB is free"));
}

TEST_CASE(
    "what never ends is told at the time limit, the communicator is aborted only where that is "
    "asked for") {
  Plan plan = planned_on_star(2, "S(0)", "S(1)", "p2p");
  for (NcclFault::Kind kind : {NcclFault::Kind::Never, NcclFault::Kind::AsyncError})
    for (bool may_abort : {false, true}) {
      StandinJob job;
      job.world = 2;
      job.limit = std::chrono::milliseconds(1000);
      job.standin.faults = {{kind, 0, 3}};  // its first three launches make the plan ready
      std::vector<std::string> errors;
      std::mutex mutex;
      StandinOutcome outcome = run_callers(job, [&](CallerRank& rank) {
        rank.lent.may_abort = may_abort;
        CallerPlan buffers(plan, *rank.device, rank.raw->rank);
        NcclExecutor executor(rank.job(job.limit));
        auto prepared = executor.prepare(plan, buffers.shards());
        std::vector<std::string> mine;
        prepared->enqueue();
        for (int i = 0; i < 2; ++i) {
          try {
            i == 0 ? prepared->wait() : prepared->enqueue();
            mine.emplace_back("nothing thrown");
          } catch (const BackendError& error) {
            mine.emplace_back(error.what());
          }
        }
        std::lock_guard lock(mutex);
        errors.insert(errors.end(), mine.begin(), mine.end());
      });
      CAPTURE(may_abort, errors);
      INFO(outcome.text());
      CHECK(outcome.misuse.empty());
      CHECK(outcome.live_handles == (may_abort ? 0 : 2));
      REQUIRE(errors.size() == 4);
      for (std::size_t i = 0; i < 4; i += 2)
        CHECK_THAT(errors[i],
                   Contains("not done within 1000ms") || Contains("reports: stand-in error 6"));
      for (std::size_t i = 1; i < 4; i += 2)
        CHECK_THAT(errors[i], Contains("the first error was: "));
    }
}

}  // namespace
}  // namespace reshard::test
