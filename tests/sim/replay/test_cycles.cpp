// SPDX-License-Identifier: BSD-3-Clause
// Cycles of waits and of launches that are too long for a sentence: one row for each wait.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::call;
using reshard::test::end;
using reshard::test::trace_of;

TEST_CASE("a long circle of waits is told in a table of its ranks and lines") {
  // Each of twelve receives from the one before it before it sends to the next.
  std::vector<std::string> lines;
  for (int rank = 0; rank < 12; ++rank) {
    lines.push_back(end("recv", rank, (rank + 11) % 12));
    lines.push_back(end("send", rank, (rank + 1) % 12));
  }
  ReplayReport report =
      test::Rig(test::star(12)).replay(trace_of(R"({"reshard_trace": 1})", lines));
  REQUIRE(report.findings.size() == 1);
  const TraceFinding& found = report.findings[0];
  CHECK(found.what ==
        "t.jsonl:2: operations of ranks 0-11 wait for each other forever, 12 in a cycle");
  CHECK(found.ranks.size() == 12);
  CHECK(found.lines.size() == 24);
  REQUIRE(found.cycle.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    const TraceWait& wait = found.cycle[i];
    int rank = to_int(wait.rank), before = (rank + 11) % 12;
    // It does not come to its send, as it receives from the one before it, which does not, either.
    CHECK(wait.line == 2 * rank + 3);
    CHECK(wait.held_by == "stream 0");
    CHECK(wait.predecessor == 2 * rank + 2);
    CHECK(wait.waits_for == 2 * before + 3);
    CHECK(wait.of == Rank{before});
    CHECK(found.cycle[(i + 1) % 12].rank == wait.of);
  }
}

TEST_CASE("a long circle of launches is told in a table of its ranks and lines") {
  // Each of ten has a communicator with the next one and launches it before that with the last.
  std::string comms;
  std::vector<std::string> lines;
  for (int rank = 0; rank < 10; ++rank) {
    comms +=
        fmt::format(R"({}"c{}": [{}, {}])", rank == 0 ? "" : ", ", rank, rank, (rank + 1) % 10);
    lines.push_back(call(rank, fmt::format("c{}", rank), 0));
    lines.push_back(call(rank, fmt::format("c{}", (rank + 9) % 10), 1));
  }
  ReplayReport report =
      test::Rig(test::star(10))
          .replay(
              trace_of(fmt::format(R"({{"reshard_trace": 1, "comms": {{{}}}}})", comms), lines));
  REQUIRE(report.findings.size() == 1);
  const TraceFinding& found = report.findings[0];
  CHECK_THAT(found.what, Catch::EndsWith("(NCCL_LAUNCH_ORDER_IMPLICIT would): 10 in a cycle"));
  CHECK(found.ranks.size() == 10);
  REQUIRE(found.cycle.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    const TraceWait& wait = found.cycle[i];
    int rank = to_int(wait.rank);
    CHECK(wait.line == 2 * rank + 3);
    CHECK(wait.held_by == "launch order");
    CHECK(wait.predecessor == 2 * rank + 2);
    CHECK(found.cycle[(i + 1) % 10].rank == wait.of);
    // Of the communicator with the next one, which that launches second.
    CHECK(wait.of == Rank{(rank + 1) % 10});
    CHECK(wait.waits_for == 2 * to_int(wait.of) + 3);
  }
}
