// SPDX-License-Identifier: BSD-3-Clause
// Messages on small networks, to the picosecond. B bytes at r bytes/s take ceil(B * 10^12 / r) ps;
// 1 GB/s moves 1 byte per 1000 ps.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/unit_sizes.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr sim::EngineOptions kAll{true, true};

// End of each flow, by operation.
std::vector<std::int64_t> ends(const Timeline& timeline, std::size_t operations) {
  std::vector<std::int64_t> out(operations, -1);
  for (const FlowSpan& flow : timeline.flows) out[to_index(flow.op)] = flow.end_ps;
  return out;
}

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("one message takes its latency and its bytes at the full rate") {
  // 500 + ceil(1001 * 10^12 / 10^9) = 500 + 1,001,000
  Workload w{{message(0, 1, 1001, 0)}};
  Timeline t = sim::run(w, switched(2, kGB, 500), kAll);
  CHECK(t.end_ps == 1'001'500);
  CHECK(t.spans == std::vector<Span>{{OpId{0}, -1, Rank{0}, 0, 1'001'500},
                                     {OpId{0}, -1, Rank{1}, 0, 1'001'500}});
  CHECK(t.flows == std::vector<FlowSpan>{{OpId{0}, -1, Rank{0}, Rank{1}, 1001, 0, 1'001'500}});
  REQUIRE(t.resources.size() == 4);
  CHECK(t.resources[to_index(out_of(0))] == ResourceUse{1001, 1'001'000});
  CHECK(t.resources[to_index(into(1))] == ResourceUse{1001, 1'001'000});
  CHECK(t.resources[to_index(out_of(1))] == ResourceUse{0, 0});
}

TEST_CASE("a finish time is rounded up") {
  // 10^12 / 3 = 333,333,333,333.33..
  Workload w{{message(0, 1, 1, 0)}};
  CHECK(sim::run(w, switched(2, 3)).end_ps == 333'333'333'334);
}

TEST_CASE("a cap holds where the ports would give more") {
  // min(10^9, 250 * 10^6): 1000 bytes take 4,000,000
  Workload w{{message(0, 1, 1000, 0)}};
  CHECK(sim::run(w, switched(2, kGB, 0, kGB / 4)).end_ps == 4'000'000);
}

TEST_CASE(
    "two messages into one port halve it, and the longer speeds up when the shorter is gone") {
  // x0 + x1 <= 1 GB/s. Both 1000 bytes at 1/2: the short one ends at 2,000,000. Then 2000 bytes at
  // 1: ends at 4,000,000.
  Workload w{{message(0, 2, 1000, 0), message(1, 2, 3000, 1, {}, 0, 1)}};
  Timeline t = sim::run(w, switched(3, kGB), kAll);
  CHECK(ends(t, 2) == Times{2'000'000, 4'000'000});
  CHECK(t.resources[to_index(into(2))] == ResourceUse{4000, 4'000'000});
  CHECK(t.resources[to_index(out_of(0))] == ResourceUse{1000, 2'000'000});
}

TEST_CASE("both directions of a port do not disturb each other") {
  Workload w{{message(0, 1, 1000, 0), message(1, 0, 1000, 1, {}, 1, 1)}};
  CHECK(sim::run(w, switched(2, kGB)).end_ps == 1'000'000);
}

TEST_CASE("a message shares only after its latency") {
  // Message 1 starts at 1,000,000 (after a compute) and shares from 1,500,000 on. Message 0 shares
  // from 500,000 on:
  //   500,000 .. 1,500,000 alone, 1000 bytes; then halves: its other 1000 bytes need 2,000,000:
  //   ends at 3,500,000 message 1 by then 1000 bytes, the other 2000 alone: ends at 5,500,000
  Workload w;
  w.operations.push_back(message(0, 2, 2000, 0));
  w.operations.push_back({Compute{ranks(1, 1), 1'000'000}, 0, {}});
  w.operations.push_back(message(1, 2, 3000, 2, {}, 0, 1));
  Timeline t = sim::run(w, switched(3, kGB, 500'000), kAll);
  CHECK(ends(t, 3) == Times{3'500'000, -1, 5'500'000});
  // Shared from 500,000 to the end.
  CHECK(t.resources[to_index(into(2))] == ResourceUse{5000, 5'000'000});
}

TEST_CASE("a message without bytes ends after its latency and uses nothing") {
  Workload w{{message(0, 1, 0, 0)}};
  Timeline t = sim::run(w, switched(2, kGB, 700), kAll);
  CHECK(t.end_ps == 700);
  CHECK(t.resources[to_index(out_of(0))] == ResourceUse{0, 0});
  CHECK(sim::run(w, switched(2, kGB)).end_ps == 0);
}

TEST_CASE("a rank's message to itself takes no time, on one stream or two") {
  for (std::int32_t other : {0, 1}) {
    Workload w;
    w.operations.push_back({Compute{ranks(1), 100}, 0, {}});
    w.operations.push_back(message(0, 0, 1000, 1, {}, 0, other));
    w.operations.push_back({Compute{ranks(1), 10}, other, {}});
    Timeline t = sim::run(w, switched(2, kGB, 500), kAll);
    INFO("stream " << other);
    CHECK(t.end_ps == 110);  // the receiving end waits for the sending one: the second compute
                             // comes after the first
    CHECK(t.flows.empty());
  }
}

TEST_CASE("a latency begins when both ends have come to their part") {
  // The receiver computes 3,000,000 first; the sender waits. 3,000,000 + 500 + 1,000,000
  Workload w;
  w.operations.push_back({Compute{ranks(1, 1), 3'000'000}, 0, {}});
  w.operations.push_back(message(0, 1, 1000, 1));
  Timeline t = sim::run(w, switched(2, kGB, 500), kAll);
  CHECK(t.end_ps == 4'000'500);
  CHECK(t.flows[0].start_ps == 3'000'000);
  CHECK(t.spans[1] == Span{OpId{1}, -1, Rank{0}, 0, 4'000'500});
  CHECK(t.spans[2] == Span{OpId{1}, -1, Rank{1}, 3'000'000, 4'000'500});
}

TEST_CASE("a receiving end runs where it is placed") {
  // Rank 1: compute A (1000 ps) is operation 0, compute B operation 1; message 2 from rank 0, 1
  // byte = 1000 ps.
  auto build = [](std::int32_t place) {
    Workload w;
    w.operations.push_back({Compute{ranks(1, 1), 1000}, 0, {}});
    w.operations.push_back({Compute{ranks(1, 1), 5000}, 0, {}});
    w.operations.push_back(received_at(place, 0, 1, 1, 2));
    return w;
  };
  auto received = [&](std::int32_t place) {
    return sim::run(build(place), switched(2, kGB), kAll).flows.front().end_ps;
  };
  CHECK(received(0) == 1000);  // first of all
  CHECK(received(1) == 2000);  // between A and B
  CHECK(received(2) == 7000);  // where it stands itself
  CHECK(received(3) == 7000);  // behind everything
}

TEST_CASE("receiving ends of one place come in the order of their operations") {
  // Both go to rank 2 before its compute: 1 byte takes 1000, then 2 bytes 2000.
  Workload w;
  w.operations.push_back(received_at(2, 0, 2, 1, 0));
  w.operations.push_back(received_at(2, 1, 2, 2, 1));
  w.operations.push_back({Compute{ranks(1, 2), 10}, 0, {}});
  Timeline t = sim::run(w, switched(3, kGB), kAll);
  CHECK(ends(t, 3) == Times{1000, 3000, -1});
  CHECK(t.end_ps == 3010);
}

TEST_CASE("staged copies: one stream runs at the cap, two at the staging") {
  // Ten messages of 64 MiB from GPU 0 to 2 and 3 in turn; cap 6.887e9 per flow, staging 8.604e9
  // shared.
  //   one stream:   10 * ceil(67108864e12 / 6.887e9)           = 10 * 9,744,281,110   =  97.44 ms
  //   two streams:  two at a time at 4.302e9 each: 5 * ceil(67108864e12 / 4.302e9)    =  5 *
  //   15,599,456,997 =  78.00 ms
  constexpr std::int64_t kBytes = 64 << 20;
  auto build = [](std::int32_t streams) {
    Workload w;
    for (std::int32_t i = 0; i < 10; ++i)
      w.operations.push_back(message(0, 2 + i % 2, kBytes, i, {}, i % streams, i % streams));
    return w;
  };
  Topology box = shared_medium(4, 8'604'000'000, 0, 6'887'000'000);
  CHECK(transfer_ps(kBytes, 6'887'000'000) == 9'744'281'110);
  CHECK(transfer_ps(kBytes, 4'302'000'000) == 15'599'456'997);
  CHECK(sim::run(build(1), box).end_ps == 97'442'811'100);
  CHECK(sim::run(build(2), box).end_ps == 77'997'284'985);
}

TEST_CASE("a time beyond the clock and more flows than bytes per second are the input's fault") {
  Workload long_message{{message(0, 1, kMaxBytes, 0)}};
  CHECK_THROWS_AS(sim::run(long_message, switched(2, kGB)), InputError);
  Workload crowd;
  for (std::int32_t i = 0; i < 4; ++i) crowd.operations.push_back(message(i, 4, 1, i, {}, 0, i));
  CHECK_THROWS_AS(sim::run(crowd, switched(5, 3)), InputError);
  Workload stranger{{message(0, 2, 1, 0)}};
  CHECK_THROWS_AS(sim::run(stranger, switched(2, kGB)), InputError);
}
