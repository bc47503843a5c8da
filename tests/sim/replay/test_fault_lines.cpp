// SPDX-License-Identifier: BSD-3-Clause
// Faults as lines of a trace: what they cost, where that shows, and what is refused.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kPlainHeader = R"({"reshard_trace": 1})";
const std::string kSend = R"({"op": "send", "rank": 0, "peer": 1, "bytes": 100000})",
                  kReceive = R"({"op": "recv", "rank": 1, "peer": 0, "bytes": 100000})";

std::string fault(const std::string& fields) { return R"({"op": "fault", )" + fields + "}"; }

// 100 GB/s a port, 1 us.
ReplayReport replayed_faults(const std::vector<std::string>& lines) {
  Topology topology = test::star(4);
  return test::Rig(topology).replay(trace_of(kPlainHeader, lines));
}

std::string fault_error(const std::string& line) {
  try {
    replayed_faults({line, kSend, kReceive});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a link at half its rate costs what it costs") {
  // 1 us of latency and 1 us of bytes; two.
  ReplayReport report =
      replayed_faults({fault(R"("link": "node0.gpu0.port.out", "share": 0.5)"), kSend, kReceive});
  CHECK(report.time_ps == 3'000'000);
  REQUIRE(report.fault_cost);
  CHECK(report.fault_cost->without_ps == 2'000'000);
  REQUIRE(report.fault_cost->grown.size() == 1);
  CHECK(report.lines[to_index(report.fault_cost->grown[0].op)] == 3);
  CHECK(report.fault_cost->grown[0].ps == 1'000'000);
  CHECK_FALSE(replayed_faults({kSend, kReceive}).fault_cost);
}

TEST_CASE("faults begin at their time") {
  CHECK(
      replayed_faults({fault(R"("link": "node0.gpu0.port.out", "share": 0.5, "from_ps": 1500000)"),
                       kSend, kReceive})
          .time_ps == 2'500'000);
  CHECK(replayed_faults({fault(R"("rank": 1, "latency_ps": 700000)"), kSend, kReceive}).time_ps ==
        2'700'000);
  const std::string compute = R"({"op": "compute", "ranks": "0", "duration_ps": 4000000})";
  CHECK(replayed_faults({fault(R"("rank": 0, "share": 0.25, "from_ps": 3000000)"), compute})
            .time_ps == 7'000'000);
}

TEST_CASE("a rank that is late is late to what is queued after the line") {
  const std::string compute = R"({"op": "compute", "ranks": "1", "duration_ps": 500000})";
  ReplayReport report =
      replayed_faults({compute, fault(R"("rank": 1, "late_ps": 9000000)"), kSend, kReceive});
  CHECK(report.time_ps == 11'000'000);
  CHECK(report.fault_cost->without_ps == 2'500'000);
  // The sender waits from 0 on, so the message is longer by all of it.
  CHECK(report.lines[to_index(report.fault_cost->grown[0].op)] == 4);
}

TEST_CASE("a link that is down for ever is a finding with the line that waits") {
  ReplayReport report = replayed_faults(
      {fault(R"("link": "node0.gpu1.port.in", "share": 0, "from_ps": 1200000)"), kSend, kReceive});
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].what ==
        "t.jsonl:3: message from rank 0 to rank 1 waits for node0.gpu1.port.in, which is down");
}

TEST_CASE("fault lines are checked") {
  CHECK(fault_error(fault(R"("link": "nvlink", "share": 0.5)")) ==
        "t.jsonl:2: link: expected a link of star such as 'node0.gpu0.port.out', found 'nvlink'");
  CHECK(fault_error(fault(R"("share": 0.5)")) == "t.jsonl:2: fault: expected one of link and rank");
  CHECK(fault_error(fault(R"("rank": 0, "link": "a", "share": 0.5)")) ==
        "t.jsonl:2: fault: expected one of link and rank");
  CHECK(fault_error(fault(R"("rank": 0)")) ==
        "t.jsonl:2: fault: expected one of share, latency_ps and late_ps");
  CHECK(fault_error(fault(R"("rank": 0, "share": 0.5, "late_ps": 1)")) ==
        "t.jsonl:2: fault: expected one of share, latency_ps and late_ps");
  CHECK(fault_error(fault(R"("link": "a", "late_ps": 1)")) ==
        "t.jsonl:2: late_ps: expected it only with rank, found it with link");
  CHECK(fault_error(fault(R"("rank": 0, "share": 0)")) ==
        "t.jsonl:2: share: expected a number above 0 and up to 1, found 0");
  CHECK(fault_error(fault(R"("rank": 0, "share": 1.5)")) ==
        "t.jsonl:2: share: expected a number above 0 and up to 1, found 1.5");
  CHECK(fault_error(fault(R"("link": "a", "share": "half")")) ==
        "t.jsonl:2: share: expected a number from 0 to 1, found 'half'");
  CHECK(fault_error(fault(R"("rank": 9, "share": 0.5)")) ==
        "t.jsonl:2: expected ranks below 4, the number of devices of star, found rank 9");
}

TEST_CASE("what has grown most is told first, up to the end of its last rank") {
  // Half of rank 0's rate: 1 us becomes 2, 4 become 8; rank 1 is as before.
  auto compute = [](int ps) {
    return fmt::format(R"({{"op": "compute", "ranks": "0-1", "duration_ps": {}}})", ps);
  };
  ReplayReport report = replayed_faults(
      {fault(R"("rank": 0, "share": 0.5)"), compute(1'000'000), compute(4'000'000)});
  const std::vector<Grown>& grown = report.fault_cost->grown;
  REQUIRE(grown.size() == 2);
  CHECK(report.lines[to_index(grown[0].op)] == 4);
  CHECK(grown[0].ps == 9'000'000 - 4'000'000);  // rank 1 begins at 1, rank 0 ends at 10
  CHECK(grown[1].ps == 1'000'000);
  // A host that is held up makes its rank late, as a compute does.
  ReplayReport late = replayed_faults(
      {fault(R"("rank": 1, "late_ps": 9000000)"),
       R"({"op": "collective", "kind": "all_reduce", "ranks": "0-2", "bytes": 8})"});
  REQUIRE(late.late.size() == 1);
  CHECK(late.late[0].rank == Rank{1});
}

TEST_CASE("the critical path is that of the run with its faults") {
  Topology topology = test::star(4);
  test::Rig rig(topology);
  rig.options.critical_path = true;
  ReplayReport report = rig.replay(trace_of(
      kPlainHeader, {fault(R"("link": "node0.gpu0.port.out", "share": 0.5)"), kSend, kReceive}));
  REQUIRE(report.path);
  REQUIRE_FALSE(report.path->parts.empty());
  CHECK(report.path->parts.back().end_ps == report.time_ps);
}
