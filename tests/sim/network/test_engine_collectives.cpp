// SPDX-License-Identifier: BSD-3-Clause
// Collectives in closed form on a star, and groups that share links.
#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr std::int64_t kRate = 1'000'000'000, kLatency = 2'000'000;

Workload collective(CollectiveKind kind, Algorithm algorithm, std::vector<Rank> on,
                    std::int64_t bytes) {
  Workload w;
  w.operations.push_back({BareCollective{kind, algorithm, std::move(on), bytes}, 0, {}});
  return w;
}

std::int64_t time_ps(CollectiveKind kind, Algorithm algorithm, std::int32_t n, std::int64_t bytes) {
  return sim::run(collective(kind, algorithm, ranks(n), bytes), switched(n, kRate, kLatency))
      .end_ps;
}

std::int64_t round_ps(std::int64_t bytes, std::int64_t rate = kRate) {
  return kLatency + transfer_ps(bytes, rate);
}

}  // namespace

TEST_CASE("ring collectives take one latency and one chunk per round") {
  for (std::int32_t n : {2, 3, 5, 8, 16}) {
    INFO("n " << n);
    // (n-1) * (latency + ceil(chunk / rate)), every port carrying one chunk each way
    CHECK(time_ps(CollectiveKind::AllGather, Algorithm::Ring, n, 1001) == (n - 1) * round_ps(1001));
    CHECK(time_ps(CollectiveKind::ReduceScatter, Algorithm::Ring, n, 1001) ==
          (n - 1) * round_ps(1001));
    CHECK(time_ps(CollectiveKind::AllToAll, Algorithm::Ring, n, 1001) == (n - 1) * round_ps(1001));
    // 2 (n-1) rounds of count/n
    CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Ring, n, 1000 * n) ==
          2 * (n - 1) * round_ps(1000));
  }
}

TEST_CASE("direct collectives take one latency, the port shared by n - 1") {
  for (std::int32_t n : {2, 3, 5, 8}) {
    INFO("n " << n);
    std::int64_t share = kRate / (n - 1);
    CHECK(time_ps(CollectiveKind::AllGather, Algorithm::Direct, n, 1001) == round_ps(1001, share));
    CHECK(time_ps(CollectiveKind::ReduceScatter, Algorithm::Direct, n, 1001) ==
          round_ps(1001, share));
    CHECK(time_ps(CollectiveKind::AllToAll, Algorithm::Direct, n, 1001) == round_ps(1001, share));
    CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Direct, n, 1000 * n) ==
          2 * round_ps(1000, share));
  }
}

TEST_CASE("a tree takes two passes of logarithmic depth") {
  // Every pair of a round has its ports to itself: 2 ceil(log2 n) rounds of the whole buffer.
  CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Tree, 2, 1000) == 2 * round_ps(1000));
  CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Tree, 5, 1000) == 6 * round_ps(1000));
  CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Tree, 8, 1000) == 6 * round_ps(1000));
}

TEST_CASE("chunks without bytes cost their latency") {
  // 2 elements over 4 members: chunks 1 1 0 0. Member 0 has the chunks of 1 in flight somewhere in
  // every round, so every round is a full one for the ring as a whole, but each rank goes on by
  // itself. The critical path is the chunk of 1 byte that goes round: 6 hops, each latency + 1000
  // ps.
  CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Ring, 4, 2) == 6 * round_ps(1));
  CHECK(time_ps(CollectiveKind::AllReduce, Algorithm::Ring, 4, 0) == 6 * kLatency);
}

TEST_CASE("a member's part is done when its own sends and receives are, whatever the others do") {
  // Ring all_gather of 3 where member 2 comes late by 1 s: the others wait for it, in round 0
  // already at its neighbours.
  Workload w;
  w.operations.push_back({Compute{ranks(1, 2), 1'000'000'000'000}, 0, {}});
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(3), 1000}, 0, {}});
  Timeline t = sim::run(w, switched(3, kRate, kLatency), {true, true});
  // 0 -> 1 moves at once; 1 -> 2 and 2 -> 0 when 2 has come.
  CHECK(t.flows[0] == FlowSpan{OpId{1}, -1, Rank{0}, Rank{1}, 1000, 0, round_ps(1000)});
  CHECK(t.flows[1].start_ps == 1'000'000'000'000);
  CHECK(t.end_ps == 1'000'000'000'000 + 2 * round_ps(1000));
}

TEST_CASE("two groups that share a medium contend, two with their own do not") {
  // Two rings of two ranks; every round 4 flows share 1 GB/s: 250 MB/s each, against 2 flows of one
  // ring alone at 500 MB/s.
  Workload both;
  both.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(2), 1000}, 0, {}});
  Workload one = both;
  both.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(2, 2), 1000}, 0, {}});
  CHECK(sim::run(one, shared_medium(4, kRate, kLatency)).end_ps == round_ps(1000, kRate / 2));
  CHECK(sim::run(both, shared_medium(4, kRate, kLatency)).end_ps == round_ps(1000, kRate / 4));
  CHECK(sim::run(both, switched(4, kRate, kLatency)).end_ps == round_ps(1000));
}

TEST_CASE("a group that ends early leaves its share to the other") {
  // Medium of 1 GB/s. Ring A moves 1000 bytes each way, ring B 2000. Four flows at 250 MB/s until A
  // ends at 4,000,000 (after the latency); B has 1000 bytes left in two flows at 500 MB/s:
  // 2,000,000 more.
  Workload w;
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(2), 1000}, 0, {}});
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllGather, Algorithm::Ring, ranks(2, 2), 2000}, 0, {}});
  Timeline t = sim::run(w, shared_medium(4, kRate, kLatency));
  CHECK(t.spans[0].end_ps == kLatency + 4'000'000);
  CHECK(t.spans[2].end_ps == kLatency + 6'000'000);
  CHECK(t.resources[0] == ResourceUse{6000, 6'000'000});
}

TEST_CASE("the ring follows the order in which the ranks are written") {
  Workload w =
      collective(CollectiveKind::AllGather, Algorithm::Ring, {Rank{2}, Rank{0}, Rank{1}}, 10);
  Timeline t = sim::run(w, switched(3, kRate), {true, true});
  std::vector<std::pair<Rank, Rank>> first;
  for (const FlowSpan& flow : t.flows)
    if (flow.start_ps == 0) first.emplace_back(flow.source, flow.destination);
  CHECK(first == std::vector<std::pair<Rank, Rank>>{
                     {Rank{0}, Rank{1}}, {Rank{1}, Rank{2}}, {Rank{2}, Rank{0}}});
}

TEST_CASE("collectives of absurd size are refused before they start") {
  Topology large = switched(1 << 18, kRate);
  auto refusal = [&](CollectiveKind kind, Algorithm algorithm, std::int32_t n) -> std::string {
    try {
      sim::run(collective(kind, algorithm, ranks(n), 8), large);
    } catch (const InputError& error) {
      return error.what();
    }
    return "ran";
  };
  // 2 n (n-1) and n (n-1) transfers.
  CHECK_THAT(refusal(CollectiveKind::AllReduce, Algorithm::Ring, 1 << 18),
             Catch::Contains("found 137438429184, 262144 at the same time"));
  CHECK_THAT(refusal(CollectiveKind::AllToAll, Algorithm::Direct, 1 << 13),
             Catch::Contains("found 67100672, 67100672 at the same time"));
  CHECK(refusal(CollectiveKind::AllReduce, Algorithm::Tree, 1 << 13) == "ran");
}
