// SPDX-License-Identifier: BSD-3-Clause
// What communicators, batches and launches do to a trace: when it runs, how long it takes, and how
// it is said that it cannot run.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::trace_of;

namespace {

const std::string kHeader = R"({"reshard_trace": 1, "comms": {"a": "0-2", "b": "0-2"}})";

std::string end(const char* op, int rank, int peer, const std::string& more = "") {
  return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": 100000{}}})", op, rank, peer,
                     more);
}

std::string call(int rank, const char* communicator, int stream = 0, const std::string& more = "") {
  return fmt::format(R"({{"op": "collective", "kind": "all_reduce", "rank": {}, "comm": "{}", )"
                     R"("bytes": 8, "stream": {}{}}})",
                     rank, communicator, stream, more);
}

std::string compute(int rank, std::int64_t ps, const std::string& more = "") {
  return fmt::format(R"({{"op": "compute", "ranks": "{}", "duration_ps": {}{}}})", rank, ps, more);
}

ReplayReport replayed(const std::vector<std::string>& lines, const std::string& header = kHeader,
                      bool implicit = false) {
  Topology topology = test::star(4);  // 100 GB/s a port, 1 us
  test::Rig rig(topology);
  rig.hooks.implicit_launch_order = implicit;
  return rig.replay(trace_of(header, lines));
}

std::string hang_of(const std::vector<std::string>& lines, bool implicit = false) {
  ReplayReport report = replayed(lines, kHeader, implicit);
  return report.findings.empty() ? "runs" : report.findings.front().what;
}

// A message takes 1 us and 100,000 bytes at 100 GB/s.
constexpr std::int64_t kMessagePs = 2'000'000;

}  // namespace

TEST_CASE("messages of one communicator follow each other on every rank that has several") {
  auto lines = [](const std::string& first, const std::string& second) {
    return std::vector<std::string>{end("send", 0, 1, first), end("recv", 1, 0, first),
                                    end("send", 0, 2, second + R"(, "stream": 1)"),
                                    end("recv", 2, 0, second)};
  };
  const std::string a = R"(, "comm": "a")", b = R"(, "comm": "b")";
  CHECK(replayed(lines(a, a)).time_ps == 2 * kMessagePs);
  // Both go out of one port at half the rate: 1 us and 2 * 1 us.
  CHECK(replayed(lines(a, b)).time_ps == 3'000'000);
  CHECK(replayed(lines("", "")).time_ps == 3'000'000);
}

TEST_CASE("collectives without a name are of their group's own communicator") {
  auto time = [](const std::string& first, const std::string& second) {
    auto line = [](const std::string& ranks, int stream) {
      return fmt::format(R"({{"op": "collective", "kind": "all_reduce", "ranks": "{}", )"
                         R"("bytes": 200000, "stream": {}}})",
                         ranks, stream);
    };
    return replayed({line(first, 0), line(second, 1)}).time_ps;
  };
  // Two ranks, two rounds of half the bytes: 2 * (1 us + 1 us). Of one group they follow each
  // other; of two they share the way out of rank 0 and the way into it.
  CHECK(time("0-1", "1,0") == 8'000'000);
  CHECK(time("0-1", "0,2") == 6'000'000);
}

TEST_CASE("crossed calls of two communicators on one stream wait for each other for ever") {
  CHECK(hang_of(
            {call(0, "a"), call(0, "b"), call(1, "b"), call(1, "a"), call(2, "a"), call(2, "b")}) ==
        "t.jsonl:2: operations wait for each other for ever: line 5 (all_reduce on rank 1) stands "
        "behind line 4 (all_reduce on rank 1) on stream 0, which meets line 3 (all_reduce on rank "
        "0), which stands behind line 2 (all_reduce on rank 0) on stream 0, which meets line 5 "
        "(all_reduce on rank 1)");
}

TEST_CASE("a message that stands among collectives of its communicator is in their order") {
  // Rank 0 sends, then reduces; rank 1 reduces, then receives, on streams of its own.
  const std::string a = R"(, "comm": "a", "stream": 5)";
  CHECK(hang_of({end("send", 0, 1, a), call(0, "a"), call(1, "a"), end("recv", 1, 0, a),
                 call(2, "a")}) ==
        "t.jsonl:2: operations wait for each other for ever: line 5 (recv on rank 1) of "
        "communicator 'a' comes behind line 4 (all_reduce on rank 1), which meets line 3 "
        "(all_reduce on rank 0), which of communicator 'a' comes behind line 2 (send on rank 0), "
        "which meets line 5 (recv on rank 1)");
}

TEST_CASE("launches of two communicators in orders that contradict each other are refused") {
  // On streams of their own nothing waits; whether both kernels find room is another question.
  std::vector<std::string> crossed{call(0, "a", 0), call(0, "b", 1), call(1, "b", 1),
                                   call(1, "a", 0), call(2, "a", 0), call(2, "b", 1)};
  CHECK(hang_of(crossed) ==
        "t.jsonl:2: communicators are used in orders that contradict each other, and no stream "
        "decides (NCCL_LAUNCH_ORDER_IMPLICIT would): rank 0 launches line 2 (all_reduce) before "
        "line 3 (all_reduce), rank 1 launches line 4 (all_reduce) before line 5 (all_reduce)");
  CHECK(replayed(crossed).findings.front().ranks == std::vector<Rank>{Rank{0}, Rank{1}});
  CHECK(hang_of(crossed, true) == "runs");
  CHECK(
      replayed(crossed, R"({"reshard_trace": 1, "launch_order_implicit": true})").findings.empty());
  // Alike everywhere.
  std::swap(crossed[2], crossed[3]);
  CHECK(hang_of(crossed) == "runs");
}

TEST_CASE("launches that streams or after put in order contradict nothing") {
  // Rank 1 launches b first, but a comes before it all the same.
  std::vector<std::string> lines{call(0, "a", 0),
                                 call(0, "b", 1),
                                 call(1, "b", 1, R"(, "after": "a1")"),
                                 call(1, "a", 0, R"(, "id": "a1")"),
                                 call(2, "a", 0),
                                 call(2, "b", 1)};
  CHECK(hang_of(lines) == "runs");
  // Three ranks in a circle, each with two of three communicators.
  const std::string header =
      R"({"reshard_trace": 1, "comms": {"x": "0,1", "y": "1,2", "z": "0,2"}})";
  std::vector<std::string> circle{call(0, "x", 0), call(0, "z", 1), call(1, "y", 1),
                                  call(1, "x", 0), call(2, "z", 1), call(2, "y", 0)};
  ReplayReport report = replayed(circle, header);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].ranks == std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}});
  CHECK(report.findings[0].lines == std::vector<std::int64_t>{2, 3, 4, 5, 6, 7});
  std::swap(circle[4], circle[5]);
  CHECK(replayed(circle, header).findings.empty());
}

TEST_CASE("a batch exchanges what one after the other would block") {
  auto lines = [](const std::string& more) {
    return std::vector<std::string>{end("send", 0, 1, more), end("recv", 0, 1, more),
                                    end("send", 1, 0, more), end("recv", 1, 0, more),
                                    compute(0, 1'000)};
  };
  CHECK_THAT(hang_of(lines(R"(, "comm": "a")")), Catch::StartsWith("t.jsonl:2: operations wait"));
  ReplayReport report = replayed(lines(R"(, "comm": "a", "batch": 1)"));
  CHECK(report.findings.empty());
  CHECK(report.time_ps == kMessagePs + 1'000);
}

TEST_CASE("isend and irecv hold nobody back; what comes after them by name waits") {
  std::vector<std::string> lines{end("isend", 0, 1, R"(, "comm": "a", "id": "m")"),
                                 compute(0, 3'000'000), end("recv", 1, 0, R"(, "comm": "a")")};
  CHECK(replayed(lines).time_ps == 3'000'000);
  lines.push_back(compute(0, 3'000'000, R"(, "after": "m", "stream": 1)"));
  CHECK(replayed(lines).time_ps == kMessagePs + 3'000'000);
  lines[0] = end("send", 0, 1, R"(, "comm": "a", "id": "m")");
  CHECK(replayed(lines).time_ps == kMessagePs + 3'000'000);
  lines.pop_back();
  CHECK(replayed(lines).time_ps == kMessagePs + 3'000'000);
  lines[0] = end("send", 0, 1, R"(, "comm": "a", "async": true)");
  CHECK(replayed(lines).time_ps == 3'000'000);
}

TEST_CASE("a rank that comes late is named with what others waited") {
  ReplayReport report = replayed({call(0, "a"), compute(1, 10'000'000), call(1, "a"), call(2, "a"),
                                  call(0, "b"), call(1, "b"), call(2, "b")});
  REQUIRE(report.late.size() == 1);
  CHECK(report.late[0].rank == Rank{1});
  CHECK(report.lines[to_index(report.late[0].op)] == 4);
  CHECK(report.late[0].arrival_ps == 10'000'000);
  CHECK(report.late[0].late_ps == 10'000'000);
  CHECK(report.late[0].waited_ps == 20'000'000);
  // Two that come together are not late; nor is one whom a message kept.
  CHECK(replayed({call(0, "a"), compute(1, 10'000'000), call(1, "a"), compute(2, 10'000'000),
                  call(2, "a")})
            .late.empty());
  CHECK(replayed({call(0, "a"), end("recv", 1, 3), call(1, "a"), compute(3, 10'000'000),
                  end("send", 3, 1), call(2, "a")})
            .late.empty());
}

TEST_CASE("a launch queue that holds what waits for what it keeps out is told") {
  // Rank 0 issues the send first, which comes after the compute that it issues next.
  std::vector<std::string> lines{end("send", 0, 1, R"(, "after": "c")"),
                                 compute(0, 1'000, R"(, "id": "c", "stream": 1)"),
                                 end("recv", 1, 0)};
  auto with_queue = [&](std::int64_t launches) {
    NodeTemplate node = test::star(4).node();
    node.machine.set(Figure::LaunchQueue, launches * kRatioOne);
    test::Rig rig(Topology("star", node, {}, 1));
    return rig.replay(trace_of(kHeader, lines));
  };
  CHECK(with_queue(2).time_ps == kMessagePs + 1'000);
  ReplayReport full = with_queue(1);
  REQUIRE(full.findings.size() == 1);
  CHECK(full.findings[0].what ==
        "t.jsonl:2: operations wait for each other for ever: line 2 (send on rank 0) comes after "
        "line 3 (compute on rank 0), which finds no room in a launch queue that waits for line 2 "
        "(send on rank 0)");
}
