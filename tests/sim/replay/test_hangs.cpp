// SPDX-License-Identifier: BSD-3-Clause
// The effect of communicators, batches and launches on a trace: when it runs, how long it takes,
// and the message if it cannot run.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::call;
using reshard::test::compute;
using reshard::test::end;
using reshard::test::trace_of;

namespace {

const std::string kTwoCommsHeader = R"({"reshard_trace": 1, "comms": {"a": "0-2", "b": "0-2"}})";

ReplayReport replayed_calls(const std::vector<std::string>& lines,
                            const std::string& header = kTwoCommsHeader, bool implicit = false) {
  Topology topology = test::star(4);  // 100 GB/s a port, 1 us
  test::Rig rig(topology);
  rig.options.implicit_launch_order = implicit;
  return rig.replay(trace_of(header, lines));
}

std::string hang_of(const std::vector<std::string>& lines, bool implicit = false) {
  ReplayReport report = replayed_calls(lines, kTwoCommsHeader, implicit);
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
  CHECK(replayed_calls(lines(a, a)).time_ps == 2 * kMessagePs);
  // Both go out of one port at half the rate: 1 us and 2 * 1 us.
  CHECK(replayed_calls(lines(a, b)).time_ps == 3'000'000);
  CHECK(replayed_calls(lines("", "")).time_ps == 3'000'000);
}

TEST_CASE("collectives without a name are of their group's own communicator") {
  auto time = [](const std::string& first, const std::string& second) {
    auto line = [](const std::string& ranks, int stream) {
      return fmt::format(R"({{"op": "collective", "kind": "all_reduce", "ranks": "{}", )"
                         R"("bytes": 200000, "stream": {}}})",
                         ranks, stream);
    };
    return replayed_calls({line(first, 0), line(second, 1)}).time_ps;
  };
  // Two ranks, two rounds of half the bytes: 2 * (1 us + 1 us). Of one group they follow each
  // other; of two they share the way out of rank 0 and the way into it.
  CHECK(time("0-1", "1,0") == 8'000'000);
  CHECK(time("0-1", "0,2") == 6'000'000);
}

TEST_CASE("crossed calls of two communicators on one stream wait for each other forever") {
  CHECK(
      hang_of(
          {call(0, "a"), call(0, "b"), call(1, "b"), call(1, "a"), call(2, "a"), call(2, "b")}) ==
      "t.jsonl:2: operations wait for each other forever: line 5 (all_reduce on rank 1) is queued "
      "after line 4 (all_reduce on rank 1) on stream 0, which meets line 3 (all_reduce on rank "
      "0), which is queued after line 2 (all_reduce on rank 0) on stream 0, which meets line 5 "
      "(all_reduce on rank 1)");
}

TEST_CASE("a message that stands among collectives of its communicator is in their order") {
  // Rank 0 sends, then reduces; rank 1 reduces, then receives, on streams of its own.
  const std::string a = R"(, "comm": "a", "stream": 5)";
  CHECK(hang_of({end("send", 0, 1, a), call(0, "a"), call(1, "a"), end("recv", 1, 0, a),
                 call(2, "a")}) ==
        "t.jsonl:2: operations wait for each other forever: line 5 (recv on rank 1) of "
        "communicator 'a' comes after line 4 (all_reduce on rank 1), which meets line 3 "
        "(all_reduce on rank 0), which of communicator 'a' comes after line 2 (send on rank 0), "
        "which meets line 5 (recv on rank 1)");
}

TEST_CASE("launches of two communicators in orders that contradict each other are refused") {
  // On streams of their own nothing waits; whether both kernels find room is another question.
  std::vector<std::string> crossed{call(0, "a", 0), call(0, "b", 1), call(1, "b", 1),
                                   call(1, "a", 0), call(2, "a", 0), call(2, "b", 1)};
  CHECK(hang_of(crossed) ==
        "t.jsonl:2: communicators are used in contradicting orders, and no stream imposes one "
        "(NCCL_LAUNCH_ORDER_IMPLICIT would): rank 0 launches line 2 (all_reduce) before "
        "line 3 (all_reduce), rank 1 launches line 4 (all_reduce) before line 5 (all_reduce)");
  CHECK(replayed_calls(crossed).findings.front().ranks == std::vector<Rank>{Rank{0}, Rank{1}});
  CHECK(hang_of(crossed, true) == "runs");
  CHECK(replayed_calls(crossed, R"({"reshard_trace": 1, "launch_order_implicit": true})")
            .findings.empty());
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
  // Three ranks in a cycle, each with two of three communicators.
  const std::string header =
      R"({"reshard_trace": 1, "comms": {"x": "0,1", "y": "1,2", "z": "0,2"}})";
  std::vector<std::string> cycle{call(0, "x", 0), call(0, "z", 1), call(1, "y", 1),
                                 call(1, "x", 0), call(2, "z", 1), call(2, "y", 0)};
  ReplayReport report = replayed_calls(cycle, header);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].ranks == std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}});
  CHECK(report.findings[0].lines == std::vector<std::int64_t>{2, 3, 4, 5, 6, 7});
  std::swap(cycle[4], cycle[5]);
  CHECK(replayed_calls(cycle, header).findings.empty());
}

TEST_CASE("a batch exchanges what one after the other would block") {
  auto lines = [](const std::string& more) {
    return std::vector<std::string>{end("send", 0, 1, more), end("recv", 0, 1, more),
                                    end("send", 1, 0, more), end("recv", 1, 0, more),
                                    compute(0, 1'000)};
  };
  CHECK_THAT(hang_of(lines(R"(, "comm": "a")")), Catch::StartsWith("t.jsonl:2: operations wait"));
  ReplayReport report = replayed_calls(lines(R"(, "comm": "a", "batch": 1)"));
  CHECK(report.findings.empty());
  CHECK(report.time_ps == kMessagePs + 1'000);
}

TEST_CASE("isend and irecv hold nobody back, what comes after them by name waits") {
  std::vector<std::string> lines{end("isend", 0, 1, R"(, "comm": "a", "id": "m")"),
                                 compute(0, 3'000'000), end("recv", 1, 0, R"(, "comm": "a")")};
  CHECK(replayed_calls(lines).time_ps == 3'000'000);
  lines.push_back(compute(0, 3'000'000, R"(, "after": "m", "stream": 1)"));
  CHECK(replayed_calls(lines).time_ps == kMessagePs + 3'000'000);
  lines[0] = end("send", 0, 1, R"(, "comm": "a", "id": "m")");
  CHECK(replayed_calls(lines).time_ps == kMessagePs + 3'000'000);
  lines.pop_back();
  CHECK(replayed_calls(lines).time_ps == kMessagePs + 3'000'000);
  lines[0] = end("send", 0, 1, R"(, "comm": "a", "async": true)");
  CHECK(replayed_calls(lines).time_ps == 3'000'000);
}

TEST_CASE("a rank that comes late is named with what others waited") {
  ReplayReport report = replayed_calls({call(0, "a"), compute(1, 10'000'000), call(1, "a"),
                                        call(2, "a"), call(0, "b"), call(1, "b"), call(2, "b")});
  REQUIRE(report.late.size() == 1);
  CHECK(report.late[0].rank == Rank{1});
  CHECK(report.lines[to_index(report.late[0].op)] == 4);
  CHECK(report.late[0].arrival_ps == 10'000'000);
  CHECK(report.late[0].late_ps == 10'000'000);
  CHECK(report.late[0].waited_ps == 20'000'000);
  // Two that come together are not late; nor is one whom a message kept.
  CHECK(replayed_calls({call(0, "a"), compute(1, 10'000'000), call(1, "a"), compute(2, 10'000'000),
                        call(2, "a")})
            .late.empty());
  CHECK(replayed_calls({call(0, "a"), end("recv", 1, 3), call(1, "a"), compute(3, 10'000'000),
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
    return rig.replay(trace_of(kTwoCommsHeader, lines));
  };
  CHECK(with_queue(2).time_ps == kMessagePs + 1'000);
  ReplayReport full = with_queue(1);
  REQUIRE(full.findings.size() == 1);
  CHECK(full.findings[0].what ==
        "t.jsonl:2: operations wait for each other forever: line 2 (send on rank 0) comes after "
        "line 3 (compute on rank 0), which finds no room in a launch queue that waits for line 2 "
        "(send on rank 0)");
}

TEST_CASE("of a batch that fills the launch queue what is not over is named") {
  // Rank 1 receives behind what comes after the compute that rank 0 has no room for.
  const std::string batch = R"(, "comm": "a", "batch": 1)", a = R"(, "comm": "a")";
  NodeTemplate node = test::star(4).node();
  node.machine.set(Figure::LaunchQueue, kRatioOne);
  test::Rig rig(Topology("star", node, {}, 1));
  ReplayReport report =
      rig.replay(trace_of(kTwoCommsHeader, {end("send", 0, 2, batch), end("send", 0, 1, batch),
                                            compute(0, 1'000, R"(, "id": "c", "stream": 1)"),
                                            compute(1, 1'000, R"(, "after": "c")"),
                                            end("recv", 1, 0, a), end("recv", 2, 0, a)}));
  REQUIRE(report.findings.size() == 1);
  CHECK(
      report.findings[0].what ==
      "t.jsonl:3: operations wait for each other forever: line 6 (recv on rank 1) is queued after "
      "line 5 (compute on rank 1) on stream 0, which comes after line 4 (compute on rank 0), "
      "which finds no room in a launch queue that waits for line 3 (send on rank 0), which meets "
      "line 6 (recv on rank 1)");
}

TEST_CASE("what follows a batch on some rank may be launched before it on another") {
  // Rank 0 has b behind the batch on one stream; rank 1 launches b first, on a stream of its own.
  const std::string batch = R"(, "comm": "a", "batch": 1)";
  const std::string header = R"({"reshard_trace": 1, "comms": {"a": "0,1", "b": "0,1"}})";
  std::vector<std::string> lines{end("send", 0, 1, batch), end("recv", 0, 1, batch),
                                 call(0, "b", 0),          call(1, "b", 1),
                                 end("send", 1, 0, batch), end("recv", 1, 0, batch)};
  CHECK(replayed_calls(lines, header).findings.empty());
  lines[2] = call(0, "b", 1);
  CHECK(replayed_calls(lines, header).findings.size() == 1);
}

TEST_CASE("every operation of a batch is launched where the batch is") {
  // The second of rank 0's batch and b cross on rank 2.
  const std::string batch = R"(, "comm": "a", "batch": 1)", a = R"(, "comm": "a")";
  const std::string header = R"({"reshard_trace": 1, "comms": {"a": "0-2", "b": "0,2"}})";
  ReplayReport report =
      replayed_calls({end("send", 0, 1, batch), end("send", 0, 2, batch), call(0, "b", 1),
                      end("recv", 1, 0, a), call(2, "b", 1), end("recv", 2, 0, a)},
                     header);
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].ranks == std::vector<Rank>{Rank{0}, Rank{2}});
  CHECK(report.findings[0].lines == std::vector<std::int64_t>{3, 4, 6, 7});
}

TEST_CASE("a collective that one line says may be asynchronous, too") {
  // Two rounds of 1 us and 1 us beside a compute of 3 us, or before it.
  auto time = [](const char* async) {
    return replayed_calls(
               {fmt::format(R"({{"op": "collective", "kind": "all_reduce", "ranks": "0-1", )"
                            R"("bytes": 200000, "async": {}}})",
                            async),
                compute(0, 3'000'000)})
        .time_ps;
  };
  CHECK(time("false") == 7'000'000);
  CHECK(time("true") == 4'000'000);
}

TEST_CASE("a rank is late only by more than others differ, than the rest takes, than it matters") {
  auto late = [](const std::vector<std::string>& lines) {
    return replayed_calls(lines).late.size();
  };
  auto at = [](std::int64_t first, std::int64_t second, int bytes = 8) {
    std::vector<std::string> lines{compute(1, first), compute(2, second)};
    for (int rank = 0; rank < 3; ++rank)
      lines.push_back(fmt::format(R"({{"op": "collective", "kind": "all_reduce", "rank": {}, )"
                                  R"("comm": "a", "bytes": {}}})",
                                  rank, bytes));
    return lines;
  };
  CHECK(late(at(10'000'000, 21'000'000)) == 1);
  CHECK(late(at(10'000'000, 19'000'000)) == 0);  // 9 behind one who is 10 behind the first
  // 30 MB take four rounds of 1 us and 100 us.
  CHECK(late(at(0, 390'000'000, 30'000'000)) == 0);
  CHECK(late(at(0, 430'000'000, 30'000'000)) == 1);
  std::vector<std::string> lines = at(0, 10'000'000);
  lines.push_back(compute(0, 185'000'000));
  CHECK(late(lines) == 1);
  lines.back() = compute(0, 195'000'000);  // a run of more than twenty times 10
  CHECK(late(lines) == 0);
}

TEST_CASE("the stream that is named is that of the line that waits there") {
  CHECK(hang_of({end("send", 0, 1), end("send", 0, 1, R"(, "tag": 1)"),
                 end("recv", 1, 0, R"(, "tag": 1, "stream": 3)"),
                 end("recv", 1, 0, R"(, "stream": 3)")}) ==
        "t.jsonl:2: operations wait for each other forever: line 5 (recv on rank 1) is queued "
        "after line 4 (recv on rank 1) on stream 3, which meets line 3 (send on rank 0), which is "
        "queued after line 2 (send on rank 0) on stream 0, which meets line 5 (recv on rank 1)");
}

TEST_CASE("messages by copy engines do not follow each other, whatever communicator they name") {
  auto time = [](const std::string& more) {
    return replayed_calls({end("send", 0, 1, more), end("recv", 1, 0, more),
                           end("send", 0, 2, more + R"(, "stream": 1)"), end("recv", 2, 0, more)})
        .time_ps;
  };
  const std::string engine = R"(, "transport": "copy-engine")";
  CHECK(time(engine + R"(, "comm": "a")") == time(engine));
}

TEST_CASE("a workload has the ranks of calls in their order, and thread blocks of computes") {
  Workload w = replayed_calls({compute(0, 1'000, R"(, "blocks": 132)"), call(2, "a"), call(0, "a"),
                               call(1, "a")})
                   .workload;
  CHECK(std::get<Compute>(w.operations[0].body).blocks == 132);
  CHECK(std::get<BareCollective>(w.operations[1].body).ranks ==
        std::vector<Rank>{Rank{0}, Rank{1}, Rank{2}});
}

TEST_CASE("a bound knows no communicators: they are no physics") {
  const std::string a = R"(, "comm": "a")";
  ReplayReport report =
      replayed_calls({end("send", 0, 1, a), end("recv", 1, 0, a),
                      end("send", 0, 2, a + R"(, "stream": 1)"), end("recv", 2, 0, a)});
  CHECK(report.time_ps == 2 * kMessagePs);
  CHECK(report.path_bound_ps == kMessagePs);
}

TEST_CASE("a circle is told although one of its ranks has a stream that decides") {
  // x before z on rank 0's one stream says nothing of z before y on 2 and y before x on 1.
  const std::string header =
      R"({"reshard_trace": 1, "comms": {"x": "0,1", "y": "1,2", "z": "0,2"}})";
  CHECK(replayed_calls({call(0, "x", 0), call(0, "z", 0), call(1, "y", 1), call(1, "x", 0),
                        call(2, "z", 1), call(2, "y", 0)},
                       header)
            .findings.size() == 1);
}

TEST_CASE("who is late has computed for most of the time that it is behind the others") {
  // Rank 1 computes, then waits for a message that comes at 10 us.
  auto late = [](std::int64_t computed, std::int64_t others) {
    return replayed_calls({compute(1, computed), compute(3, others + 8'000'000), end("send", 3, 1),
                           end("recv", 1, 3), compute(0, others + 1), compute(2, others + 1),
                           call(0, "a"), call(1, "a"), call(2, "a")})
        .late.size();
  };
  CHECK(late(6'000'000, 0) == 1);
  CHECK(late(4'000'000, 0) == 0);
  CHECK(late(10'000'000, 10'000'000) == 0);  // that was while the others computed, too
  // In the order of arrivals.
  ReplayReport two = replayed_calls(
      {compute(1, 30'000'000), compute(2, 10'000'000, R"(, "stream": 1)"), call(0, "a"),
       call(1, "a"), call(2, "a"), call(0, "b", 1), call(1, "b", 1), call(2, "b", 1)});
  REQUIRE(two.late.size() == 2);
  CHECK(two.late[0].arrival_ps == 10'000'000);
  CHECK(two.late[1].arrival_ps == 30'000'000);
}

TEST_CASE("policies are compared under the launch order of the run") {
  test::Rig rig(test::star(4));
  rig.options.implicit_launch_order = true;
  rig.options.communicators = CommunicatorPolicy::Eager;
  ReplayReport report =
      rig.replay(trace_of(kTwoCommsHeader, {call(0, "a", 0), call(0, "b", 1), call(1, "b", 1),
                                            call(1, "a", 0), call(2, "a", 0), call(2, "b", 1)}));
  CHECK(report.findings.empty());
  for (const CommunicatorResult& result : report.communicators) CHECK(result.hang.empty());
}
