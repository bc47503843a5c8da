// SPDX-License-Identifier: BSD-3-Clause
// Collectives with a root, and barriers: their lines, which calls match, and their times by links
// alone and at least.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/machines/presets.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/prng.h"
#include "tests/support/star.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::end;
using reshard::test::trace_of;

namespace {

const std::string kRootedHeader = R"({"reshard_trace": 1, "comms": {"c": "0-3", "d": "0-2"}})";

std::string rooted(const std::string& kind, int root, const std::string& more,
                   std::int64_t bytes = 100'000) {
  return fmt::format(R"({{"op": "collective", "kind": "{}", "root": {}, "bytes": {}{}}})", kind,
                     root, bytes, more);
}
std::string line(const std::string& kind, int root = 0, const std::string& more = "",
                 std::int64_t bytes = 100'000) {
  return rooted(kind, root, R"(, "ranks": "0-3")" + more, bytes);
}
std::string rooted_call(int rank, const std::string& kind, int root = 0,
                        const std::string& more = "") {
  return rooted(kind, root, fmt::format(R"(, "rank": {}, "comm": "c"{})", rank, more));
}
std::string barrier(const std::string& more) {
  return R"({"op": "collective", "kind": "barrier")" + more + "}";
}
ReplayReport replayed_rooted(const std::vector<std::string>& lines) {
  Topology topology = test::star(4);  // 100 GB/s a port, 1 us
  return test::Rig(topology).replay(trace_of(kRootedHeader, lines));
}

std::string rooted_error(const std::string& text) {
  try {
    trace_of(kRootedHeader, {text});
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string finding_of(const std::vector<std::string>& lines) {
  ReplayReport report = replayed_rooted(lines);
  return report.findings.empty() ? "runs" : report.findings.front().what;
}

}  // namespace

TEST_CASE("a rooted collective says its kind, its root and its bytes") {
  Trace trace =
      trace_of(kRootedHeader, {line("broadcast", 2), line("gather", 1, "", 7),
                               barrier(R"(, "ranks": "0-3")"), rooted_call(0, "scatter", 3)});
  const auto& broadcast = std::get<TraceCollective>(trace.operations[0].body);
  CHECK(broadcast.kind == BareKind::Broadcast);
  CHECK(broadcast.root == Rank{2});
  CHECK(broadcast.algorithm == Algorithm::Ring);
  const auto& gather = std::get<TraceCollective>(trace.operations[1].body);
  CHECK(gather.kind == BareKind::Gather);
  CHECK(gather.bytes == 7);
  CHECK(gather.algorithm == Algorithm::Direct);
  CHECK(std::get<TraceCollective>(trace.operations[2].body).kind == BareKind::Barrier);
  CHECK(std::get<TraceCall>(trace.operations[3].body).root == Rank{3});
}

TEST_CASE("what a rooted collective may not say is refused in its line") {
  CHECK(rooted_error(R"({"op": "collective", "kind": "broadcast", "ranks": "0-3", "bytes": 1})") ==
        "t.jsonl:2: root: expected an integer from 0 to 1048575, found no such field");
  CHECK(rooted_error(line("reduce", 7)) ==
        "t.jsonl:2: root: expected one of the ranks 0-3, found 7");
  CHECK(rooted_error(rooted("gather", 5, R"(, "rank": 0, "ranks": "0-3")")) ==
        "t.jsonl:2: root: expected one of the ranks 0-3, found 5");
  CHECK(rooted_error(line("all_reduce")) ==
        "t.jsonl:2: root: expected it only for a broadcast, reduce, gather or scatter, found it "
        "for an all_reduce");
  CHECK(rooted_error(line("barrier")) ==
        "t.jsonl:2: root: expected it only for a broadcast, reduce, gather or scatter, found it "
        "for a barrier");
  CHECK(rooted_error(barrier(R"(, "ranks": "0-3", "bytes": 1)")) ==
        "t.jsonl:2: 'bytes': expected a field of collective, found an unknown one");
  CHECK(rooted_error(line("bcast")) ==
        "t.jsonl:2: kind: expected all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, "
        "reduce, gather, scatter or barrier, found 'bcast'");
  CHECK(rooted_error(line("broadcast", 0, R"(, "algorithm": "tree")")) ==
        "t.jsonl:2: algorithm: expected one that broadcast has (ring, direct), found 'tree'");
  CHECK(rooted_error(line("gather", 0, R"(, "algorithm": "ring")")) ==
        "t.jsonl:2: algorithm: expected one that gather has (direct), found 'ring'");
  CHECK(rooted_error(line("gather", 0, "", std::int64_t{1} << 61)) ==
        "t.jsonl:2: gather of 2305843009213693952 bytes over 4 ranks: expected at most 2^62 bytes "
        "in all");
  CHECK(rooted_error(line("broadcast", 0, "", std::int64_t{1} << 62)) == "no error");
}

// One way of 1 us and 100,000 bytes at 100 GB/s; of three that share a port each has a third of it,
// rounded down.
TEST_CASE("by links alone a pipeline takes one way, a root's port what goes through it") {
  struct Row {
    std::string line;
    std::int64_t time_ps, bound_ps, received;
  };
  const std::string direct = R"(, "algorithm": "direct")";
  for (const Row& row : {Row{line("broadcast"), 2'000'000, 2'000'000, 300'000},
                         {line("broadcast", 3), 2'000'000, 2'000'000, 300'000},
                         {line("broadcast", 0, direct), 4'000'001, 2'000'000, 300'000},
                         {line("reduce", 1), 2'000'000, 2'000'000, 300'000},
                         {line("reduce", 1, direct), 4'000'001, 2'000'000, 300'000},
                         {line("gather", 2), 4'000'001, 4'000'000, 300'000},
                         {line("scatter", 2), 4'000'001, 4'000'000, 300'000}}) {
    CAPTURE(row.line);
    ReplayReport report = replayed_rooted({row.line});
    CHECK(report.findings.empty());
    CHECK(report.time_ps == row.time_ps);
    CHECK(report.bound_ps == row.bound_ps);
    CHECK(report.bytes_received_total == row.received);
  }
  // Four rounds of an all_reduce of one f32: 1 us and 40 ps each.
  CHECK(replayed_rooted({barrier(R"(, "ranks": "0-3")")}).time_ps == 4'000'160);
  CHECK(replayed_rooted({rooted("broadcast", 2, R"(, "ranks": "2")")}).time_ps == 0);
}

TEST_CASE("rows name the root") {
  ReplayReport report =
      replayed_rooted({line("broadcast", 2), line("gather", 1), barrier(R"(, "ranks": "0-3")")});
  REQUIRE(report.others.size() == 3);
  CHECK(report.others[0].text == "broadcast from rank 2 on ranks 0-3");
  CHECK(report.others[0].op == "collective");
  CHECK(report.others[1].text == "gather to rank 1 on ranks 0-3");
  CHECK(report.others[1].bytes_received == 300'000);
  CHECK(report.others[2].text == "barrier on ranks 0-3");
}

TEST_CASE("calls of a rooted collective meet, whoever makes them first") {
  std::vector<std::string> lines;
  for (int rank : {3, 1, 0, 2}) lines.push_back(rooted_call(rank, "broadcast", 1));
  for (int rank : {0, 1, 2, 3})
    lines.push_back(barrier(fmt::format(R"(, "rank": {}, "comm": "c")", rank)));
  ReplayReport report = replayed_rooted(lines);
  CHECK(report.findings.empty());
  CHECK(report.time_ps == 2'000'000 + 4'000'160);
}

TEST_CASE("calls that differ in the root, or that a rank misses, are told") {
  CHECK(finding_of({rooted_call(0, "broadcast"), rooted_call(1, "broadcast"),
                    rooted_call(2, "broadcast", 3), rooted_call(3, "broadcast")}) ==
        "t.jsonl:4: rank 2 calls broadcast of 100000 bytes from rank 3 in line 4, but ranks 0-1,3 "
        "call broadcast of 100000 bytes from rank 0 on communicator 'c' in lines 2, 3, 5");
  CHECK(finding_of({rooted_call(0, "reduce"), rooted_call(1, "reduce"), rooted_call(2, "broadcast"),
                    rooted_call(3, "reduce")}) ==
        "t.jsonl:4: rank 2 calls broadcast of 100000 bytes from rank 0 in line 4, but ranks 0-1,3 "
        "call reduce of 100000 bytes to rank 0 on communicator 'c' in lines 2, 3, 5");
  CHECK(finding_of({rooted_call(0, "gather", 2), rooted_call(1, "gather", 2),
                    rooted_call(2, "gather", 2)}) ==
        "t.jsonl:2: rank 3 never reaches the gather of 100000 bytes to rank 2 on communicator 'c': "
        "ranks 0-2 wait for it in lines 2, 3, 4");
  CHECK(finding_of({barrier(R"(, "rank": 0, "comm": "c")"), barrier(R"(, "rank": 1, "comm": "c")"),
                    barrier(R"(, "rank": 3, "comm": "c")")}) ==
        "t.jsonl:2: rank 2 never reaches the barrier on communicator 'c': ranks 0-1,3 wait for "
        "it in lines 2, 3, 4");
  CHECK(finding_of({rooted("broadcast", 3, R"(, "rank": 0, "comm": "d")"),
                    rooted("broadcast", 3, R"(, "rank": 1, "comm": "d")"),
                    rooted("broadcast", 3, R"(, "rank": 2, "comm": "d")")}) ==
        "t.jsonl:2: broadcast of 100000 bytes from rank 3 is on communicator 'd', which has ranks "
        "0-2");
}

// A gather is a group of sends and receives: a rank whose part has gone to the root goes on.
TEST_CASE("a gather holds nobody but its root, a broadcast holds all") {
  auto lines = [](const std::string& kind) {
    std::vector<std::string> out;
    for (int rank : {0, 1, 3}) out.push_back(rooted_call(rank, kind, 0));
    out.push_back(end("send", 1, 2));
    out.push_back(end("recv", 2, 1));
    out.push_back(rooted_call(2, kind, 0));
    return out;
  };
  ReplayReport gather = replayed_rooted(lines("gather"));
  CHECK(gather.findings.empty());
  // Two parts share the root's port: 1 us + 2 us; then the message, then the last part.
  CHECK(gather.time_ps == 3'000'000 + 2'000'000 + 2'000'000);
  CHECK(finding_of(lines("broadcast")).find("wait for each other forever") != std::string::npos);
  CHECK(finding_of(lines("reduce")).find("wait for each other forever") != std::string::npos);
}

TEST_CASE("drawn rooted collectives take no less than their bounds, by any transport") {
  test::Prng prng(33);
  const std::vector<std::string_view> transports(kTransportNames.begin(), kTransportNames.end());
  const char* kinds[] = {"broadcast", "reduce", "gather", "scatter"};
  Topology topology = find_topology("dgx-h100:2");
  test::Rig rig(topology);
  for (int draw = 0; draw < 200; ++draw) {
    int count = 2 + static_cast<int>(prng.below(7));
    std::vector<int> ranks;
    for (int rank = 0; rank < 16; ++rank) ranks.push_back(rank);
    prng.shuffle(ranks);
    ranks.resize(static_cast<std::size_t>(count));
    std::string text = rooted(kinds[prng.below(4)], prng.pick(ranks),
                              fmt::format(R"(, "ranks": [{}], "transport": "{}")",
                                          fmt::join(ranks, ", "), prng.pick(transports)),
                              1 + prng.below(std::int64_t{1} << (1 + prng.below(33))));
    CAPTURE(text);
    ReplayReport report = rig.replay(trace_of(kRootedHeader, {text}));
    CHECK(report.findings.empty());
    CHECK(report.time_ps >= report.bound_ps);  // replay() checks it, too
    CHECK(report.bound_ps > 0);
  }
}
