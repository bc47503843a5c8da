// SPDX-License-Identifier: BSD-3-Clause
// Orders of launches: which send delays which, what a swap would gain, and the order that ends
// first.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/machines/presets.h"
#include "tests/sim/replay/replay_case.h"
#include "tests/support/star.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::compute;
using reshard::test::end;
using reshard::test::kUs;
using reshard::test::trace_of;

namespace {

// An end on the stream and the communicator of the pipeline.
std::string pipe_end(const char* op, int rank, int peer, const std::string& more = "") {
  return end(op, rank, peer, R"(, "comm": "pp", "stream": 1)" + more);
}

ReplayReport reordered(const std::vector<std::string>& lines, bool search = true) {
  Topology topology = test::star(4);  // a message takes 2 us
  test::Rig rig(topology);
  rig.options.reorder = search;
  return rig.replay(trace_of(R"({"reshard_trace": 1})", lines));
}

ReplayReport reordered_trace(const std::string& name) {
  Trace trace = read_trace("traces/" + name + ".jsonl");
  Topology topology = find_topology(trace.topology);
  test::Rig rig(topology);
  rig.options.reorder = true;
  return rig.replay(trace);
}

constexpr std::int64_t kMessage = 2 * kUs;

// Stage 2 has what stage 3 waits for; stage 1 is still at it. The forum post's "send 1 -> 2" and
// "send 2 -> 3" on one stream of GPU 2.
std::vector<std::string> stages(bool upstream_first) {
  std::vector<std::string> out{
      compute(1, 30 * kUs, R"(, "id": "forward 1")"),
      pipe_end("isend", 1, 2, R"(, "after": "forward 1")"),
      pipe_end("irecv", 2, 1),
      pipe_end("isend", 2, 3, R"(, "id": "to 3")"),
      pipe_end("irecv", 3, 2),
      compute(3, 10 * kUs, R"(, "after": "to 3")"),
  };
  if (!upstream_first) std::swap(out[2], out[3]);
  return out;
}

}  // namespace

TEST_CASE("send 1 -> 2 delays send 2 -> 3 and the next forward pass, the other order does not") {
  // With it first the forward pass on 3 begins when both messages are over, behind stage 1:
  // 30 + 2 + 2, and takes 10. The other way round it begins at 2, and 1 -> 2 ends the run at 32.
  ReplayReport delayed = reordered(stages(true)), ready = reordered(stages(false));
  CHECK(delayed.time_ps == 30 * kUs + 2 * kMessage + 10 * kUs);
  CHECK(ready.time_ps == 30 * kUs + kMessage);
  auto starts_on_3 = [](const ReplayReport& report) { return *report.others.back().start_ps; };
  CHECK(starts_on_3(delayed) == 30 * kUs + 2 * kMessage);
  CHECK(starts_on_3(ready) == kMessage);
}

TEST_CASE("the swap is found, with what it gains") {
  ReplayReport report = reordered(stages(true));
  REQUIRE(report.reordered);
  REQUIRE(report.reordered->delayed.size() >= 1);
  const Delayed& pair = report.reordered->delayed[0];
  CHECK(pair.rank == Rank{2});
  CHECK(report.lines[to_index(pair.op)] == 5);           // the send to 3
  CHECK(report.lines[to_index(pair.predecessor)] == 4);  // the recv from 1
  CHECK(pair.waited_ps == 30 * kUs + kMessage);
  CHECK(pair.gain_ps == 12 * kUs);  // 44 - 32
  REQUIRE(report.reordered->swaps.size() == 1);
  CHECK(report.reordered->time_ps == 32 * kUs);
  CHECK(report.time_ps == 44 * kUs);
  // What gains nothing is not swapped.
  ReplayReport best = reordered(stages(false));
  CHECK(best.reordered->swaps.empty());
  CHECK(best.reordered->time_ps == best.time_ps);
  // Who does not search is told the pair all the same.
  ReplayReport shown = reordered(stages(true), false);
  REQUIRE(shown.reordered);
  CHECK_FALSE(shown.searched);
  CHECK(shown.reordered->delayed[0].gain_ps == 12 * kUs);
}

TEST_CASE("what depends on the other is never put before it") {
  // Stage 2 sends on what it gets from 1.
  std::vector<std::string> lines{
      compute(1, 30 * kUs, R"(, "id": "f")"),
      pipe_end("isend", 1, 2, R"(, "after": "f", "id": "to 2")"), pipe_end("irecv", 2, 1),
      pipe_end("isend", 2, 3, R"(, "after": "to 2")"), pipe_end("irecv", 3, 2)};
  ReplayReport report = reordered(lines);
  CHECK(report.time_ps == 30 * kUs + 2 * kMessage);
  CHECK(report.reordered->swaps.empty());
  // On one stream with a compute between them: the compute makes what is sent.
  std::vector<std::string> between{compute(1, 30 * kUs, R"(, "id": "f", "stream": 1)"),
                                   pipe_end("send", 1, 2, R"(, "after": "f")"),
                                   pipe_end("recv", 2, 1),
                                   compute(2, 1 * kUs, R"(, "stream": 1)"),
                                   pipe_end("send", 2, 3),
                                   pipe_end("recv", 3, 2)};
  CHECK(reordered(between).reordered->swaps.empty());
}

TEST_CASE("1F1B on the forum's machine: send 1 -> 2 before send 2 -> 3 delays, and is swapped") {
  ReplayReport upstream = reordered_trace("pipeline-1f1b"),
               downstream = reordered_trace("pipeline-1f1b-downstream"),
               copies = reordered_trace("pipeline-1f1b-copy");
  // The two orders differ in nothing but which of two sends that are ready at one time goes first.
  CHECK(upstream.time_ps > downstream.time_ps);
  auto first_start = [](const ReplayReport& report, const std::string& name) {
    for (const ReplayRow& row : report.others)
      if (row.name == name) return *row.start_ps;
    return std::int64_t{-1};
  };
  // The next forward pass of stage 3 waits for send 2 -> 3, which waits for send 1 -> 2.
  CHECK(first_start(upstream, "forward 1 on 3") > first_start(downstream, "forward 1 on 3"));
  REQUIRE_FALSE(upstream.reordered->swaps.empty());
  const Delayed& swap = upstream.reordered->swaps[0];
  CHECK(swap.rank == Rank{2});
  CHECK(swap.name == "send 2 -> 3");
  CHECK(swap.predecessor_name == "send 1 -> 2");
  CHECK(swap.gain_ps > 20'000 * kUs);
  CHECK(upstream.reordered->time_ps <= downstream.time_ps);
  CHECK(downstream.reordered->swaps.empty());
  // Copy engines have no communicator whose turn could come late.
  CHECK(copies.time_ps < downstream.time_ps);
  CHECK(upstream.bound_ps == copies.bound_ps);
  // Four micro-batches of 119.04 ms behind the first three stages of one, messages not counted.
  CHECK(copies.bound_ps > 7 * 119'040 * kUs);
}

TEST_CASE("an order that comes too late for a link is none") {
  // 2 -> 3 by 2 us, then 2 -> 0. The other way round 2 -> 3 would move bytes from 3 us on, when the
  // way into 3 is down.
  ReplayReport report = reordered(
      {pipe_end("isend", 2, 3), pipe_end("irecv", 3, 2), pipe_end("isend", 2, 0),
       pipe_end("irecv", 0, 2),
       R"({"op": "fault", "link": "node0.gpu3.port.in", "share": 0, "from_ps": 2500000})"});
  CHECK(report.findings.empty());
  CHECK(report.time_ps == 2 * kMessage);
  CHECK(report.reordered->delayed.empty());
}

TEST_CASE("a launch waited since all else that it waits for was over") {
  // Rank 2 receives by 32 us; its send of the communicator's next turn has its stream from 20 on.
  auto computed = [](int rank, std::int64_t ps, const std::string& more) {
    return compute(rank, ps, more);
  };
  auto json = [](const char* op, int rank, int peer, const char* comm, int stream,
                 const std::string& more = "") {
    return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": 100000, "comm": "{}", )"
                       R"("stream": {}{}}})",
                       op, rank, peer, comm, stream, more);
  };
  std::vector<std::string> lines{computed(2, 20 * kUs, R"(, "stream": 2)"),
                                 computed(1, 30 * kUs, R"(, "id": "f")"),
                                 json("isend", 1, 2, "pp", 1, R"(, "after": "f")"),
                                 json("irecv", 2, 1, "pp", 1),
                                 json("isend", 2, 3, "pp", 2),
                                 json("irecv", 3, 2, "pp", 1)};
  ReplayReport by_communicator = reordered(lines);
  REQUIRE(by_communicator.reordered->delayed.size() == 1);
  CHECK(by_communicator.reordered->delayed[0].waited_ps == 12 * kUs);
  // By its stream, and its communicator is free from 2 on.
  lines = {computed(1, 30 * kUs, R"(, "id": "f")"),
           json("isend", 1, 2, "pp", 1, R"(, "after": "f")"),
           json("isend", 2, 0, "q", 2),
           json("irecv", 0, 2, "q", 2),
           json("recv", 2, 1, "pp", 1),
           json("isend", 2, 3, "q", 1),
           json("irecv", 3, 2, "q", 1)};
  ReplayReport by_stream = reordered(lines);
  REQUIRE(by_stream.reordered->delayed.size() == 1);
  CHECK(by_stream.reordered->delayed[0].waited_ps == 30 * kUs);
}

TEST_CASE("what stands between two on the second's stream keeps them as they are") {
  // The compute makes what is sent.
  std::vector<std::string> lines{
      compute(1, 30 * kUs, R"(, "id": "f")"),
      pipe_end("isend", 1, 2, R"(, "after": "f")"),
      pipe_end("irecv", 2, 1),
      compute(2, 1 * kUs, R"(, "stream": 2)"),
      R"({"op": "isend", "rank": 2, "peer": 3, "bytes": 100000, "comm": "pp", "stream": 2})",
      pipe_end("irecv", 3, 2)};
  CHECK(reordered(lines).reordered->delayed.empty());
  // On a third stream it is nobody's.
  lines[3] = compute(2, 1 * kUs, R"(, "stream": 3)");
  CHECK(reordered(lines).reordered->delayed.size() == 1);
}

TEST_CASE("what is asynchronous between two keeps nobody in place") {
  std::vector<std::string> lines = stages(true);
  lines.insert(lines.begin() + 3,
               R"({"op": "isend", "rank": 2, "peer": 0, "bytes": 8, "comm": "x", "stream": 1})");
  lines.push_back(R"({"op": "irecv", "rank": 0, "peer": 2, "bytes": 8, "comm": "x"})");
  ReplayReport report = reordered(lines);
  REQUIRE(report.reordered->swaps.size() == 1);
  CHECK(report.reordered->swaps[0].gain_ps == 12 * kUs);
}

TEST_CASE("the longest wait is told first, each order that was run is counted") {
  // The better order has no pair: what waits there waits for stage 1.
  ReplayReport one = reordered(stages(true));
  CHECK(one.reordered->tried == 1);
  CHECK(one.reordered->delayed.size() == 1);
  // One more send of rank 2 behind both.
  std::vector<std::string> lines = stages(true);
  lines.push_back(pipe_end("isend", 2, 0));
  lines.push_back(pipe_end("irecv", 0, 2));
  ReplayReport two = reordered(lines, false);
  REQUIRE(two.reordered->delayed.size() >= 2);
  for (std::size_t i = 1; i < two.reordered->delayed.size(); ++i)
    CHECK(two.reordered->delayed[i].waited_ps <= two.reordered->delayed[i - 1].waited_ps);
  CHECK(two.reordered->delayed.front().waited_ps == 30 * kUs + 2 * kMessage);
}
