// SPDX-License-Identifier: BSD-3-Clause
// What a rank issues and what waits for it: communicators, asynchronous operations, batches, the
// order of launches, a bounded launch queue, setups.
#include <catch2/catch.hpp>
#include <string>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "sim/network/engine.h"
#include "sim/network/program.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

Operation compute_on(std::int32_t rank, std::int64_t duration_ps, std::int32_t stream = 0) {
  return {Compute{{Rank{rank}}, duration_ps}, stream, {}};
}

// On its own stream at both ends, of a communicator.
Operation sent(std::int32_t source, std::int32_t destination, std::int64_t bytes,
               std::int32_t stream, std::int32_t communicator) {
  Operation out{PointToPoint{Rank{source}, Rank{destination}, bytes}, stream, {}};
  out.communicator = communicator;
  return out;
}

Operation with_seats(Operation operation, std::vector<Seat> seats) {
  operation.seats = std::move(seats);
  return operation;
}

// First start of each operation.
std::vector<std::int64_t> starts(const Timeline& timeline, std::size_t operations) {
  std::vector<std::int64_t> out(operations, -1);
  for (const Span& span : timeline.spans) {
    std::int64_t& start = out[to_index(span.op)];
    if (start < 0 || span.start_ps < start) start = span.start_ps;
  }
  return out;
}

std::int64_t end_of(const Workload& w) { return sim::run(w, switched(4, kGB)).end_ps; }

std::string reason(const Workload& w, const Topology& topology) {
  try {
    sim::run(w, topology);
  } catch (const CheckFailure& failure) {
    return failure.what();
  }
  return "finished";
}

Topology with_queue(std::int64_t launches) {
  Topology plain = switched(4, kGB);
  NodeTemplate node = plain.node();
  node.machine.set(Figure::LaunchQueue, launches * kRatioOne);
  return Topology("star", node, {}, 1);
}

}  // namespace

TEST_CASE("operations of one communicator follow each other, whatever their streams") {
  // Rank 0 sends 8 bytes to 1 and 8 to 2, each on a stream of its own. Apart they share the port:
  // 16 us / 1000; of one communicator the second waits: 8000 + 8000.
  Workload apart, one;
  apart.operations = {sent(0, 1, 8, 0, 1), sent(0, 2, 8, 1, 2)};
  one.operations = {sent(0, 1, 8, 0, 1), sent(0, 2, 8, 1, 1)};
  auto starts_of = [](const Workload& w) { return starts(sim::run(w, switched(4, kGB)), 2); };
  CHECK(starts_of(apart) == std::vector<std::int64_t>{0, 0});
  CHECK(starts_of(one) == std::vector<std::int64_t>{0, 0});  // rank 2 is there at once
  Timeline t = sim::run(one, switched(4, kGB), {.record_flows = true});
  CHECK(t.flows[1].start_ps == 8'000);
  CHECK(sim::run(apart, switched(4, kGB), {.record_flows = true}).flows[1].start_ps == 0);
  // Who ignores communicators gets the first.
  sim::Order order(one, {.communicators = false});
  CHECK(
      sim::run(one, switched(4, kGB), {.record_flows = true, .order = &order}).flows[1].start_ps ==
      0);
}

TEST_CASE("a communicator is one per rank: other ranks go on") {
  // 0 -> 1, then 2 -> 3: no rank has both.
  Workload w;
  w.operations = {sent(0, 1, 8, 0, 1), sent(2, 3, 8, 0, 1)};
  CHECK(end_of(w) == 8'000);
}

TEST_CASE("streams and communicators order together, each once") {
  // Of one stream and one communicator: the wait is counted once, or the second never starts.
  Workload w;
  w.operations = {sent(0, 1, 8, 0, 1), sent(0, 1, 8, 0, 1), sent(0, 1, 8, 3, 1)};
  CHECK(end_of(w) == 24'000);
}

TEST_CASE("what is asynchronous waits for its stream and its stream does not wait for it") {
  // Rank 0: compute 5000, send 8 bytes, compute 5000. Waiting for it: 5000 + 8000 + 5000. Async:
  // the second compute runs beside it.
  Workload w;
  w.operations = {compute_on(0, 5'000), sent(0, 1, 8, 0, 1), compute_on(0, 5'000)};
  CHECK(end_of(w) == 18'000);
  w.operations[1] = with_seats(w.operations[1], {{OpId{1}, 0, true}, {OpId{1}, 0, true}});
  CHECK(end_of(w) == 13'000);
  CHECK(starts(sim::run(w, switched(4, kGB)), 3)[2] == 5'000);
  // Two of them follow each other all the same where they have a communicator.
  w.operations.push_back(with_seats(sent(0, 2, 8, 0, 1), {{OpId{3}, 0, true}, {OpId{3}, 0, true}}));
  CHECK(end_of(w) == 21'000);
}

TEST_CASE("a batch starts together and is waited for as one") {
  // Rank 0 and rank 1 each send and receive. In the order in which they stand both would send
  // first, for ever; as a batch they exchange, and the compute behind starts after the longer one.
  auto build = [](std::int32_t batch) {
    Workload w;
    Operation there = sent(0, 1, 8, 0, 1), back = sent(1, 0, 4, 0, 1);
    there.seats = {{OpId{0}, 0, false, batch}, {OpId{2}, 0, false, batch}};
    back.seats = {{OpId{1}, 0, false, batch}, {OpId{1}, 0, false, batch}};
    w.operations = {there, back, compute_on(0, 1'000)};
    return w;
  };
  CHECK_THAT(
      reason(build(-1), switched(4, kGB)),
      Catch::Contains(
          "operation 0 (message from rank 0 to rank 1) on rank 1 is queued after operation 1"));
  Timeline t = sim::run(build(7), switched(4, kGB));
  CHECK(starts(t, 3) == std::vector<std::int64_t>{0, 0, 8'000});
  CHECK(t.end_ps == 9'000);
}

TEST_CASE("all of a batch wait for what one of them comes after") {
  Workload w;
  w.operations = {compute_on(3, 6'000), sent(0, 1, 8, 0, 1), sent(0, 2, 1, 0, 1)};
  for (std::int32_t i = 1; i <= 2; ++i)
    w.operations[to_index(i)].seats = {{OpId{i}, 0, false, 1}, {OpId{i}, 0}};
  w.operations[1].after = {OpId{0}};
  Timeline t = sim::run(w, switched(4, kGB), {.record_flows = true});
  CHECK(t.flows[0].start_ps == 6'000);
  CHECK(t.flows[1].start_ps == 6'000);
  // For ever, too.
  w.operations[0].after = {OpId{2}};
  CHECK_THAT(
      reason(w, switched(4, kGB)),
      Catch::Contains("operation 2 (message from rank 0 to rank 2) comes after operation 0"));
}

TEST_CASE("an implicit launch order starts what is issued later later, not behind its end") {
  // Rank 0 issues a message to 1 behind a compute, then one to 2 on a stream of its own.
  Workload w;
  w.operations = {compute_on(0, 3'000), sent(0, 1, 8, 0, 1), sent(0, 2, 8, 1, 2)};
  auto flows = [&] {
    sim::Order order(w, {.implicit_launch_order = true});
    return sim::run(w, switched(4, kGB), {.record_flows = true, .order = &order}).flows;
  };
  CHECK(starts(sim::run(w, switched(4, kGB)), 3)[2] == 0);
  CHECK(flows().back().start_ps == 3'000);
  // What is no communicator's does not count.
  w.operations[1].communicator = -1;
  CHECK(flows()[0].destination == Rank{2});
  CHECK(flows()[0].start_ps == 0);
}

TEST_CASE("a full launch queue holds back what other streams could start") {
  // Rank 0 issues three computes of 4000 on stream 0, then one on stream 1. Room for two: the last
  // is issued when the second of stream 0 ends.
  Workload w;
  for (int i = 0; i < 3; ++i) w.operations.push_back(compute_on(0, 4'000));
  w.operations.push_back(compute_on(0, 1'000, 1));
  auto last = [&](const Topology& topology) { return starts(sim::run(w, topology), 4)[3]; };
  CHECK(last(switched(4, kGB)) == 0);
  CHECK(last(with_queue(4)) == 0);
  CHECK(last(with_queue(3)) == 4'000);
  CHECK(last(with_queue(2)) == 8'000);
  CHECK(last(with_queue(1)) == 12'000);
  CHECK(sim::run(w, with_queue(1)).end_ps == 13'000);
}

TEST_CASE("a launch queue that is full of what waits for what it keeps out never empties") {
  // Rank 0's stream 0 waits for a message from 1 that comes after rank 0's own stream 1.
  Workload w;
  w.operations = {sent(1, 0, 8, 0, -1), compute_on(0, 10, 1)};
  w.operations[0].after = {OpId{1}};
  CHECK(reason(w, with_queue(2)) == "finished");
  CHECK_THAT(reason(w, with_queue(1)),
             Catch::Contains("operation 1 (compute on rank 0) on rank 0 waits for a full launch "
                             "queue that holds operation 0"));
}

TEST_CASE("a batch is one launch of the queue") {
  Workload w;
  w.operations = {sent(0, 1, 8, 0, 1), sent(0, 2, 8, 0, 1), compute_on(0, 10, 1)};
  for (std::int32_t i = 0; i < 2; ++i)
    w.operations[to_index(i)].seats = {{OpId{i}, 0, false, 1}, {OpId{i}, 0}};
  CHECK(starts(sim::run(w, with_queue(2)), 3)[2] == 0);
  CHECK(starts(sim::run(w, with_queue(1)), 3)[2] == 16'000);
}

TEST_CASE("a setup begins when all its hosts are there and holds back what they issue later") {
  // Rank 0's host is held by a first setup with rank 1 (2000), rank 2's is not: the second, of 0
  // and 2, begins at 2000 and takes 3000. Streams run on meanwhile; what stands behind waits.
  Workload w;
  w.operations = {compute_on(0, 4'000),
                  {Setup{{Rank{0}, Rank{1}}, 2'000}, 0, {}},
                  {Setup{{Rank{0}, Rank{2}}, 3'000}, 0, {}},
                  compute_on(2, 1'000),
                  compute_on(0, 1'000, 1),
                  compute_on(1, 1'000)};
  Timeline t = sim::run(w, switched(4, kGB));
  CHECK(starts(t, 6) == std::vector<std::int64_t>{0, 0, 2'000, 5'000, 5'000, 2'000});
  CHECK(t.end_ps == 6'000);
}

TEST_CASE("crossed setups wait for each other") {
  // 0: (0,1) then (0,2); 1: (1,2) then (0,1); 2: (0,2) then (1,2).
  Workload w;
  for (auto [a, b] : {std::pair{0, 1}, {1, 2}, {0, 2}})
    w.operations.push_back({Setup{{Rank{a}, Rank{b}}, 1'000}, 0, {}});
  CHECK(end_of(w) == 3'000);
  // Rank 1 issues the second before the first, rank 2 the third before the second.
  w.operations[0].seats = {{OpId{0}}, {OpId{2}}};
  w.operations[1].seats = {{OpId{1}}, {OpId{3}}};
  CHECK_THAT(
      reason(w, switched(4, kGB)),
      Catch::Contains("operation 0 (setup of ranks 0-1) on rank 1 is issued after operation 1; "
                      "operation 1 (setup of ranks 1-2) on rank 2 is issued after operation 2; "
                      "operation 2 (setup of ranks 0,2) on rank 0 is issued after operation 0"));
}

TEST_CASE("an implicit launch order waits for the beginning of a batch, not for its end") {
  Workload w;
  w.operations = {sent(0, 1, 8, 0, 1), sent(0, 2, 8, 0, 1), sent(0, 3, 8, 1, 2)};
  for (std::int32_t i = 0; i < 2; ++i)
    w.operations[to_index(i)].seats = {{OpId{i}, 0, false, 1}, {OpId{i}, 0}};
  sim::Order order(w, {.implicit_launch_order = true});
  CHECK(sim::run(w, switched(4, kGB), {.record_flows = true, .order = &order}).flows[2].start_ps ==
        0);
}
