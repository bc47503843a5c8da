// SPDX-License-Identifier: BSD-3-Clause
// Many flows: the engine against a slow one on random networks, the 128-rank all-to-all with its
// known figures, and that two runs give the same result.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/prng.h"
#include "tests/support/slow_share.h"

using namespace reshard;
using namespace reshard::test;

namespace {

constexpr std::int64_t kNone = INT64_MAX;

// Two nodes of four: NVLink ports within, NIC ports and a spine between, with latencies and a cap
// on flows between nodes.
Topology cluster() {
  NodeTemplate node;
  node.devices = 4;
  node.ports = {{"nvlink", 900, 800}, {"nic", 500, 450}};
  node.rules = {
      {{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}}, 30, {}, Transport::NVLink},
      {{{Hop::Kind::SourceOut, 1}, {Hop::Kind::Fabric, 0}, {Hop::Kind::DestinationIn, 1}},
       70,
       333,
       Transport::Network}};
  node.rule_within = {0};
  node.rule_between = 1;
  return Topology("cluster", node, {{"spine", 1000}}, 2);
}

struct Started {
  std::int64_t share_ps;  // latency over
  std::int64_t bytes;
  SlowFlow flow;
};

// Event by event, everything looked at every time.
std::vector<std::int64_t> slow_ends(const std::vector<std::int64_t>& capacities,
                                    const std::vector<Started>& flows) {
  std::vector<std::int64_t> ends(flows.size(), -1);
  std::vector<Int128> left;
  std::vector<SlowFlow> slow;
  for (const Started& f : flows) {
    left.push_back(Int128{f.bytes} * 1'000'000'000'000);
    slow.push_back(f.flow);
  }
  std::int64_t now = 0;
  for (;;) {
    std::vector<bool> alive;
    for (std::size_t f = 0; f < flows.size(); ++f)
      alive.push_back(ends[f] < 0 && flows[f].share_ps <= now);
    std::vector<std::int64_t> rates = slow_integer_rates(capacities, slow, alive);
    std::int64_t next = kNone;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (alive[f])
        next = std::min(next, now + static_cast<std::int64_t>(ceil_div(left[f], Int128{rates[f]})));
      if (ends[f] < 0 && !alive[f]) next = std::min(next, flows[f].share_ps);
    }
    if (next == kNone) return ends;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!alive[f]) continue;
      left[f] -= Int128{rates[f]} * (next - now);
      if (left[f] <= 0) ends[f] = next;
    }
    now = next;
  }
}

}  // namespace

TEST_CASE("random messages on random starts end when the slow engine says") {
  Topology topology = cluster();
  std::vector<std::int64_t> capacities;
  for (std::int32_t r = 0; r < topology.resource_count(); ++r)
    capacities.push_back(topology.resource_bytes_per_s(ResourceId{r}));
  int flows_seen = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    Workload w;
    std::vector<Started> started;
    auto count = static_cast<std::int32_t>(prng.between(1, 40));
    for (std::int32_t i = 0; i < count; ++i) {
      auto source = static_cast<std::int32_t>(prng.below(8));
      auto destination = static_cast<std::int32_t>((source + prng.between(1, 7)) % 8);
      std::int64_t begin = prng.one_in(2) ? 0 : prng.between(0, 3) * 1'000'000'000'000;
      std::int64_t bytes = prng.one_in(3) ? 600 : prng.between(1, 5000);
      // Streams of their own: a compute on both ends says when the message begins.
      w.operations.push_back({Compute{{Rank{source}, Rank{destination}}, begin}, i, {}});
      w.operations.push_back(message(source, destination, bytes, 2 * i + 1, {}, i, i));
      Route route = topology.route(Rank{source}, Rank{destination});
      SlowFlow flow{{}, route.cap_bytes_per_s.value_or(kNone)};
      for (ResourceId resource : route.resources)
        flow.path.push_back(static_cast<std::int32_t>(to_index(resource)));
      started.push_back({begin + route.latency_ps, bytes, flow});
    }
    Timeline t = sim::run(w, topology, {true, false});
    std::vector<std::int64_t> expected = slow_ends(capacities, started), got(started.size(), -1);
    for (const FlowSpan& flow : t.flows) got[to_index(flow.op) / 2] = flow.end_ps;
    REQUIRE(got == expected);
    REQUIRE(t.end_ps == *std::max_element(expected.begin(), expected.end()));
    flows_seen += count;
  }
  CHECK(flows_seen > 1000);
}

TEST_CASE("a flow alone on its way ends as one that is solved, and keeps its links as busy") {
  // Who observes flows gets them solved, all. On the star a latency is longer than most flows, and
  // begins and ends fall together: a flow comes where another one is just about to end.
  Topology topologies[] = {cluster(), switched(8, 1'000'000'000'000, 1000)};
  sim::FlowObserver nobody;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    Workload w;
    auto count = static_cast<std::int32_t>(prng.between(2, 30));
    for (std::int32_t i = 0; i < count; ++i) {
      Rank source{static_cast<std::int32_t>(prng.below(8))};
      Rank destination{static_cast<std::int32_t>((to_int(source) + prng.between(1, 7)) % 8)};
      std::vector<OpId> after;
      if (i > 0 && prng.one_in(2)) after.push_back(OpId{static_cast<std::int32_t>(prng.below(i))});
      std::int64_t bytes = prng.one_in(4) ? prng.between(0, 5000) : prng.between(1, 4) * 250;
      w.operations.push_back({Compute{{source, destination}, prng.between(0, 8) * 250}, 2 * i, {}});
      w.operations.push_back(
          message(to_int(source), to_int(destination), bytes, 2 * i + 1, after, 2 * i, 2 * i));
    }
    for (const Topology& topology : topologies) {
      Timeline quick = sim::run(w, topology, {.record_flows = true}),
               solved = sim::run(w, topology, {.record_flows = true, .observer = &nobody});
      REQUIRE(quick.end_ps == solved.end_ps);
      REQUIRE(quick.flows == solved.flows);
      REQUIRE(quick.spans == solved.spans);
      REQUIRE(quick.resources == solved.resources);
    }
  }
}

TEST_CASE("messages of a crowded star end when the slow engine says") {
  // 90 flows, each limited by one of 20 port sides; nearly every end moves some to another limit.
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    std::int64_t capacity = prng.between(1000, 3000);
    Topology topology = switched(10, capacity);
    Workload w = all_pairs(10, [&](std::int32_t, std::int32_t) { return prng.between(1, 40); });
    std::vector<Started> started;
    for (const Operation& operation : w.operations) {
      const auto& sent = std::get<PointToPoint>(operation.body);
      started.push_back(
          {0, sent.bytes, {{2 * to_int(sent.source), 2 * to_int(sent.destination) + 1}, kNone}});
    }
    Timeline t = sim::run(w, topology, {true, false});
    std::vector<std::int64_t> got(started.size(), -1);
    for (const FlowSpan& flow : t.flows) got[to_index(flow.op)] = flow.end_ps;
    REQUIRE(got == slow_ends(std::vector<std::int64_t>(20, capacity), started));
  }
}

TEST_CASE("16,256 equal messages all end together") {
  // Each of 256 port sides carries 127 flows: 25.4e9 / 127 = 200e6 bytes/s each, 25e6 bytes take
  // 125 ms.
  Workload w = all_pairs(128, [](std::int32_t, std::int32_t) { return std::int64_t{25'000'000}; });
  Timeline t = sim::run(w, switched(128, 25'400'000'000), {true, false});
  REQUIRE(t.flows.size() == 16'256);
  CHECK(std::all_of(t.flows.begin(), t.flows.end(),
                    [](const FlowSpan& flow) { return flow.end_ps == 125'000'000'000; }));
  // 25e9 does not divide: the slowest get floor(25e9 / 127), some a byte/s or two of what rounding
  // leaves.
  std::int64_t slowest = transfer_ps(25'000'000, 25'000'000'000 / 127);
  CHECK(sim::run(w, switched(128, 25'000'000'000)).end_ps == slowest);
  // The collective is the same traffic.
  Workload one;
  one.operations.push_back(
      {BareCollective{CollectiveKind::AllToAll, Algorithm::Direct, ranks(128), 25'000'000}, 0, {}});
  CHECK(sim::run(one, switched(128, 25'000'000'000)).end_ps == slowest);
}

TEST_CASE("16,256 messages of 97 sizes end as other solvers say", "[slow]") {
  Workload w = all_pairs(128, uneven_bytes);
  Timeline t = sim::run(w, switched(128, 25'000'000'000), {true, false});
  REQUIRE(t.flows.size() == 16'256);
  Int128 sum = 0;
  std::int64_t bytes = 0, first = 0;
  for (const FlowSpan& flow : t.flows) {
    sum += flow.end_ps;
    bytes += flow.bytes;
    if (flow.source == Rank{0} && flow.destination == Rank{1}) first = flow.end_ps;
  }
  // In microseconds, rounded.
  auto rounded_us = [](Int128 ps) { return static_cast<std::int64_t>((ps + 500'000) / 1'000'000); };
  CHECK(rounded_us(t.end_ps) == 255'600);
  CHECK(rounded_us(sum / 16'256) == 167'224);
  CHECK(rounded_us(first) == 229'519);
  std::int64_t out = 0;
  for (std::int32_t i = 0; i < 128; ++i) out += t.resources[to_index(out_of(i))].bytes;
  CHECK(out == bytes);
}

TEST_CASE("two runs give the same timeline, span by span") {
  Workload w = all_pairs(24, uneven_bytes);
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllReduce, Algorithm::Ring, ranks(24), 1'000'003}, 100, {}});
  w.operations.push_back(
      {BareCollective{CollectiveKind::AllToAll, Algorithm::Direct, ranks(12, 6), 777},
       101,
       {OpId{5}}});
  Topology topology = switched(24, 25'000'000'000, 1'000'000);
  Timeline a = sim::run(w, topology, {true, true}), b = sim::run(w, topology, {true, true});
  CHECK(a.end_ps == b.end_ps);
  CHECK(a.spans == b.spans);
  CHECK(a.flows == b.flows);
  CHECK(a.resources == b.resources);
  // Recording changes nothing else.
  Timeline quiet = sim::run(w, topology, {false, false});
  CHECK(quiet.end_ps == a.end_ps);
  CHECK(quiet.resources == a.resources);
  CHECK(quiet.spans.empty());
  CHECK(quiet.flows.empty());
}

TEST_CASE("a ring all-reduce of 1024 ranks is 2046 rounds") {
  // 2 * 1023 * (1 us + ceil(2^20 bytes / 25e9)) = 2046 * (1,000,000 + 41,943,040)
  Workload w;
  w.operations.push_back({BareCollective{CollectiveKind::AllReduce, Algorithm::Ring, ranks(1024),
                                         std::int64_t{1} << 30},
                          0,
                          {}});
  Timeline t = sim::run(w, switched(1024, 25'000'000'000, 1'000'000));
  CHECK(t.end_ps == 2046 * std::int64_t{42'943'040});
  CHECK(t.resources[to_index(out_of(7))].bytes == 2046 * std::int64_t{1 << 20});
}
