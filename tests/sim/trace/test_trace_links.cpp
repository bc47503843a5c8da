// SPDX-License-Identifier: BSD-3-Clause
// Relations between lines: `after`, matching of messages, and what can never run.
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

std::string link_error(const std::vector<std::string>& lines) {
  try {
    trace_of(kPlainHeader, lines);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string compute(const std::string& id, const std::string& after, const std::string& more = "") {
  return R"({"op": "compute", "ranks": "0", "duration_ps": 1, "id": ")" + id + R"(", "after": [)" +
         after + "]" + more + "}";
}

std::string end(const char* op, int rank, int peer, int bytes = 10, int tag = 0, int stream = 0,
                const std::string& more = "") {
  return std::string(R"({"op": ")") + op + R"(", "rank": )" + std::to_string(rank) +
         R"(, "peer": )" + std::to_string(peer) + R"(, "bytes": )" + std::to_string(bytes) +
         R"(, "tag": )" + std::to_string(tag) + R"(, "stream": )" + std::to_string(stream) + more +
         "}";
}

std::vector<TraceFinding> replay_findings(const std::vector<std::string>& lines) {
  Topology topology = test::star(4);
  return test::Rig(topology).replay(trace_of(kPlainHeader, lines)).findings;
}

std::vector<Rank> ranks(const std::vector<int>& numbers) {
  std::vector<Rank> out;
  for (int number : numbers) out.push_back(Rank{number});
  return out;
}

}  // namespace

TEST_CASE("after names lines by their ids, earlier or later") {
  CHECK(link_error({compute("a", "\"b\""), compute("b", "")}) == "no error");
  CHECK(link_error({compute("a", "\"c\"")}) ==
        "t.jsonl:2: after: expected the id of a line, found 'c', which no line has");
  CHECK(link_error({compute("a", ""), compute("b", ""), compute("a", "")}) ==
        "t.jsonl:4: id: expected each id once, found 'a' again (first in line 2)");
}

TEST_CASE("A cycle of after names its lines") {
  CHECK(link_error({compute("a", "\"a\"")}) ==
        "t.jsonl:2: after: expected no cycle, found line 2 after line 2");
  // x leads into the cycle and is not part of it.
  CHECK(link_error({compute("x", "\"b\""), compute("a", "\"c\""), compute("b", "\"a\""),
                    compute("c", "\"b\"")}) ==
        "t.jsonl:3: after: expected no cycle, found line 3 after line 5 after line 4 after line 3");
}

TEST_CASE("A cycle of more than eight lines is shown in part") {
  auto cycle_of = [](int length) {
    std::vector<std::string> lines;
    for (int i = 0; i < length; ++i)
      lines.push_back(compute(std::to_string(i), fmt::format("\"{}\"", (i + 1) % length)));
    return link_error(lines);
  };
  const std::string shown =
      "t.jsonl:2: after: expected no cycle, found line 2 after line 3 after line 4 after line 5 "
      "after line 6 after line 7 after line 8 after line 9 after ";
  CHECK(cycle_of(8) == shown + "line 2");
  CHECK(cycle_of(9) == shown + "... (9 lines) after line 2");
}

TEST_CASE("A long chain of after is no cycle and needs no recursion") {
  std::vector<std::string> lines{compute("0", "")};
  for (int i = 1; i < 50'000; ++i)
    lines.push_back(compute(std::to_string(i), fmt::format("\"{}\"", i - 1),
                            fmt::format(", \"stream\": {}", i)));
  Topology topology = test::star(1);
  ReplayReport report = test::Rig(topology).replay(trace_of(kPlainHeader, lines));
  CHECK(report.time_ps == 50'000);
  CHECK(report.bound_ps == 50'000);
}

TEST_CASE("Messages meet per source, destination and tag, in line order") {
  Trace trace =
      trace_of(kPlainHeader, {end("recv", 1, 0, 10, 5), end("send", 0, 1, 10, 5),    // 0, 1
                              end("send", 0, 1, 20, 0), end("send", 0, 1, 30, 0),    // 2, 3
                              end("send", 1, 0, 40, 0), end("recv", 0, 1, 40, 0),    // 4, 5
                              end("recv", 1, 0, 20, 0), end("recv", 1, 0, 30, 0)});  // 6, 7
  CHECK(trace.findings.empty());
  std::vector<int> others;
  for (const TraceOperation& operation : trace.operations)
    others.push_back(std::get<TraceEnd>(operation.body).other);
  CHECK(others == std::vector<int>{1, 0, 6, 7, 5, 4, 2, 3});
}

TEST_CASE("What does not match is a finding with its lines") {
  std::vector<TraceFinding> findings =
      replay_findings({end("send", 0, 1), end("send", 0, 1), end("recv", 1, 0),
                       end("recv", 2, 3, 10, 7), end("send", 2, 0, 5), end("recv", 0, 2, 6)});
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].what == "t.jsonl:3: send from rank 0 to rank 1 (tag 0) has no recv");
  CHECK(findings[0].lines == std::vector<std::int64_t>{3});
  CHECK(findings[1].what == "t.jsonl:5: recv on rank 2 from rank 3 (tag 7) has no send");
  CHECK(findings[2].what ==
        "t.jsonl:6: send of 5 bytes from rank 2 to rank 0 (tag 0) meets the recv of 6 bytes in "
        "line 7");
  CHECK(findings[2].lines == std::vector<std::int64_t>{6, 7});
}

TEST_CASE("What one end says of the transport holds for the message, two words are a finding") {
  auto by = [](std::string line, const char* transport) {
    return line.insert(line.size() - 1, std::string(", \"transport\": \"") + transport + "\"");
  };
  Trace trace =
      trace_of(kPlainHeader, {by(end("send", 0, 1), "ideal"), end("recv", 1, 0), end("send", 0, 1),
                              by(end("recv", 1, 0), "nccl"), by(end("send", 0, 1), "nccl"),
                              by(end("recv", 1, 0), "ideal")});
  for (std::size_t op : {0U, 1U}) CHECK(trace.operations[op].transport == TransportKind::Ideal);
  for (std::size_t op : {2U, 3U}) CHECK(trace.operations[op].transport == TransportKind::Nccl);
  REQUIRE(trace.findings.size() == 1);
  CHECK(trace.findings[0].what ==
        "t.jsonl:6: send from rank 0 to rank 1 (tag 0) by nccl meets the recv by ideal in line 7");
  CHECK(trace.findings[0].lines == std::vector<std::int64_t>{6, 7});
}

TEST_CASE("Two ranks that both send first block, and on two streams do not") {
  std::vector<TraceFinding> findings =
      replay_findings({end("send", 0, 1), end("recv", 0, 1), end("send", 1, 0), end("recv", 1, 0),
                       compute("free", "", ", \"stream\": 9")});
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].lines == std::vector<std::int64_t>{2, 3, 4, 5});
  CHECK(findings[0].what ==
        "t.jsonl:2: operations wait for each other forever: line 5 (recv on rank 1) is queued "
        "after line 4 (send on rank 1) on stream 0, which meets line 3 (recv on rank 0), which is "
        "queued after line 2 (send on rank 0) on stream 0, which meets line 5 (recv on rank 1)");
  CHECK(findings[0].ranks == ranks({0, 1}));
  CHECK(replay_findings({end("send", 0, 1), end("recv", 0, 1, 10, 0, 1), end("send", 1, 0),
                         end("recv", 1, 0, 10, 0, 1)})
            .empty());
  CHECK(
      replay_findings({end("send", 0, 1), end("recv", 0, 1), end("recv", 1, 0), end("send", 1, 0)})
          .empty());
}

TEST_CASE("after against the order of a stream, or through a message, blocks") {
  CHECK(replay_findings({compute("a", "\"b\""), compute("b", "")}).front().lines ==
        std::vector<std::int64_t>{2, 3});
  CHECK(replay_findings({compute("a", "\"b\""), compute("b", "", ", \"stream\": 1")}).empty());
  // The send waits for compute that waits for the message's other end.
  CHECK(replay_findings({end("send", 0, 1, 10, 0, 0, R"(, "after": "c")"),
                         end("recv", 1, 0, 10, 0, 0, R"(, "id": "r")"),
                         compute("c", "\"r\"", ", \"stream\": 1")})
            .front()
            .lines == std::vector<std::int64_t>{2, 4});
}

TEST_CASE("A rank of a shared operation may go on while another one is still behind") {
  // Rank 1 computes before it receives, rank 0 sends before it computes, and the compute is one
  // line: no deadlock, since its two halves do not meet.
  std::vector<std::string> lines{end("send", 0, 1, 100'000),
                                 R"({"op": "compute", "ranks": "0-1", "duration_ps": 7})",
                                 end("recv", 1, 0, 100'000)};
  Topology topology = test::star(2);
  ReplayReport report = test::Rig(topology).replay(trace_of(kPlainHeader, lines));
  CHECK(report.findings.empty());
  // Rank 1: 7 ps; then 1 us latency and 10^5 bytes at 100 GB/s = 1 us; then rank 0's 7 ps.
  CHECK(report.time_ps == 7 + 1'000'000 + 1'000'000 + 7);
  CHECK(report.bound_ps == report.time_ps);
  // A collective does meet.
  lines[1] = R"({"op": "collective", "kind": "all_reduce", "ranks": "0-1", "bytes": 8})";
  CHECK(test::Rig(topology).replay(trace_of(kPlainHeader, lines)).findings.size() == 1);
}

TEST_CASE("A rank without a device is refused with its line") {
  Topology topology = test::star(4);
  CHECK_THROWS_WITH(
      test::Rig(topology).replay(
          trace_of(kPlainHeader,
                   {compute("a", ""), R"({"op": "compute", "ranks": "2-4", "duration_ps": 1})"})),
      "t.jsonl:3: expected ranks below 4, the number of devices of star, found rank 4");
}
