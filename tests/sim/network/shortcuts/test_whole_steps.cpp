// SPDX-License-Identifier: BSD-3-Clause
// Whole steps against the same steps run transfer by transfer: the same spans, the same bytes and
// busy times of every resource, to the picosecond.
#include "sim/network/shortcuts/whole_steps.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/machines/presets.h"
#include "sim/network/engine.h"
#include "tests/sim/network/networks.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::test;

namespace {

// Recording flows means running them.
void require_equal_runs(const Workload& workload, const Topology& topology) {
  Timeline whole = sim::run(workload, topology), each = sim::run(workload, topology, {true});
  REQUIRE(whole.end_ps == each.end_ps);
  REQUIRE(whole.spans == each.spans);
  REQUIRE(whole.resources == each.resources);
  REQUIRE(whole.routes == each.routes);
}

Workload of(BareCollective collective) {
  Workload workload;
  workload.operations.push_back({std::move(collective), 0, {}});
  return workload;
}

bool takes(const Topology& topology, const BareCollective& collective) {
  return sim::WholeSteps(topology).takes(Transfers::collective(collective), collective.ranks);
}

// Two nodes of four: ports within; between them a NIC per pair of devices, or one per node, and a
// spine.
Topology cluster(std::int32_t nodes, bool shared_nic, std::optional<std::int64_t> cap,
                 std::int64_t between_latency_ps) {
  NodeTemplate node;
  node.devices = 4;
  node.ports = {{"nvlink", 90'001, 90'001}, {"nic", 50'003, 50'003}};
  node.shared = {{"out", 77'000}, {"in", 77'000}};
  RouteRule between{{{Hop::Kind::SourceOut, 1}, {Hop::Kind::DestinationIn, 1}},
                    between_latency_ps,
                    cap,
                    Transport::Network};
  if (shared_nic)
    between.hops = {{Hop::Kind::SourceNodeShared, 0}, {Hop::Kind::DestinationNodeShared, 1}};
  node.rules = {
      {{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}}, 30, {}, Transport::NVLink},
      between};
  node.rule_within = {0};
  if (nodes > 1) node.rule_between = 1;
  return Topology("cluster", node, {}, nodes);
}

std::vector<Topology> machines() {
  std::vector<Topology> out{switched(16, 1'000'003), switched(16, 720'720, 5),
                            switched(16, 1'000'003, 5, 9'973), shared_medium(16, 1'000'003, 7)};
  for (bool shared_nic : {false, true})
    for (std::int32_t nodes : {1, 2, 4})
      for (std::int64_t latency_ps : {30, 70}) {
        out.push_back(cluster(nodes, shared_nic, {}, latency_ps));
        out.push_back(cluster(nodes, shared_nic, 3'331, latency_ps));
      }
  return out;
}

}  // namespace

TEST_CASE("collectives taken whole are what their transfers do, on small machines of all kinds") {
  using enum CollectiveKind;
  int taken = 0, all = 0;
  Prng prng(1);
  for (const Topology& topology : machines())
    for (CollectiveKind kind : {AllGather, ReduceScatter, AllReduce, AllToAll})
      for (Algorithm algorithm : {Algorithm::Ring, Algorithm::Direct, Algorithm::Tree})
        for (std::int32_t n : {2, 3, 4, 7, 8, 16}) {
          if (!has_algorithm(kind, algorithm) || n > topology.devices()) continue;
          for (std::int64_t bytes : {0, 1, 4096, 5040}) {
            BareCollective collective{kind, algorithm, ranks(n), bytes};
            if (bytes == 4096) {
              std::vector<Rank> shuffled = ranks(topology.devices());
              prng.shuffle(shuffled);
              shuffled.resize(to_index(n));
              collective.ranks = shuffled;
            }
            require_equal_runs(of(collective), topology);
            taken += takes(topology, collective) ? 1 : 0;
            ++all;
          }
        }
  INFO(taken << " of " << all);
  CHECK(taken > 1000);
  CHECK(all - taken > 500);
}

TEST_CASE("what is symmetric is taken whole") {
  using enum CollectiveKind;
  Topology star16 = switched(16, 1'000'003, 5), nodes = cluster(4, false, {}, 70);
  CHECK(takes(star16, {AllReduce, Algorithm::Ring, ranks(16), 16 * 99}));
  CHECK(takes(star16, {AllToAll, Algorithm::Direct, ranks(16), 999}));
  CHECK(takes(nodes, {AllToAll, Algorithm::Direct, ranks(16), 999}));
  CHECK(takes(cluster(4, true, {}, 70), {AllToAll, Algorithm::Direct, ranks(16), 999}));
  // One device of each node: every edge is a NIC.
  CHECK(takes(nodes, {AllGather, Algorithm::Ring, {Rank{1}, Rank{5}, Rank{9}, Rank{13}}, 999}));
}

TEST_CASE("rings are taken whole where each of their transfers has its links for itself") {
  using enum CollectiveKind;
  Topology star16 = switched(16, 1'000'003, 5), nodes = cluster(4, false, {}, 70);
  // Chunks of two sizes; a ring whose edges differ; both.
  CHECK(takes(star16, {AllReduce, Algorithm::Ring, ranks(16), 16 * 99 + 1}));
  CHECK(takes(nodes, {AllGather, Algorithm::Ring, ranks(16), 999}));
  CHECK(takes(nodes, {AllReduce, Algorithm::Ring, ranks(15), 999}));
  CHECK_FALSE(takes(cluster(4, true, {}, 70),
                    {AllReduce, Algorithm::Ring, {Rank{0}, Rank{4}, Rank{1}, Rank{5}}, 999}));
  Prng prng(7);
  for (const Topology& topology : {star16, nodes})
    for (std::int32_t n : {2, 3, 5, 8, 13, 16})
      for (std::int64_t left = 0; left < n; ++left)
        for (std::int64_t each : {0, 1, 77}) {
          std::vector<Rank> members = ranks(16);
          prng.shuffle(members);
          members.resize(to_index(n));
          BareCollective collective{AllReduce, Algorithm::Ring, members, each * n + left};
          CAPTURE(n, left, each);
          CHECK(takes(topology, collective));
          require_equal_runs(of(collective), topology);
        }
}

TEST_CASE("an uneven all_reduce of 4,096 ranks is not run transfer by transfer") {
  Topology large = switched(4096, 1'000'003, 5);
  BareCollective collective{CollectiveKind::AllReduce, Algorithm::Ring, ranks(4096), 4096 * 9 + 5};
  Timeline whole = sim::run(of(collective), large);
  // 2 x 4095 rounds, each as long as the larger chunks take: those are always under way somewhere.
  std::int64_t each_ps =
      5 + ceil_div(std::int64_t{10} * 1'000'000'000'000, std::int64_t{1'000'003});
  CHECK(whole.end_ps == 2 * 4095 * each_ps);
}

TEST_CASE("exchanges taken whole are what their messages do") {
  int taken = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    std::vector<Topology> all = machines();
    const Topology& topology = all[to_index(prng.below(std::ssize(all)))];
    std::int32_t n = topology.devices();
    std::vector<Sent> sent;
    bool alike = prng.one_in(2);
    std::int64_t dense = prng.between(1, 3);
    for (std::int32_t i = 0; i < n; ++i)
      for (std::int32_t j = 0; j < n; ++j)
        if (i != j && prng.one_in(dense))
          sent.push_back({i, j, alike ? 977 : prng.between(900, 903)});
    if (sent.empty()) continue;
    auto plan = std::make_shared<Plan>(empty_plan(n));
    // Twice, and something of one rank between: the second begins when the first has ended.
    plan->steps.push_back({exchange(sent), {}, {}});
    plan->steps.push_back({copies({0}), {StepId{0}}, {}});
    plan->steps.push_back({exchange(sent), {StepId{0}, StepId{1}}, {}});
    require_equal_runs(workload_of(plan), topology);
    sim::WholeSteps whole(topology);
    Transfers transfers(*plan, plan->steps[0]);
    std::vector<Rank> parts;
    for (Slot slot : transfers.slots()) parts.push_back(plan->rank_of(slot));
    taken += whole.takes(transfers, parts) ? 1 : 0;
  }
  CHECK(taken > 60);
}

TEST_CASE("a step is not taken whole while something else moves or follows") {
  // All-gathers of two overlapping groups, a compute that ends within, and what comes after on some
  // ranks only.
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    Workload w;
    for (int i = 0; i < 8; ++i) {
      auto first = static_cast<std::int32_t>(prng.below(9)),
           n = static_cast<std::int32_t>(prng.between(2, 7)),
           stream = static_cast<std::int32_t>(prng.below(2));
      std::vector<OpId> after;
      if (i > 0 && prng.one_in(2)) after.push_back(OpId{static_cast<std::int32_t>(prng.below(i))});
      if (prng.one_in(4))
        w.operations.push_back(
            {Compute{ranks(n, first), prng.between(0, 3) * 1'000'000'000}, stream, after});
      else
        w.operations.push_back(
            {BareCollective{prng.one_in(2) ? CollectiveKind::AllGather : CollectiveKind::AllToAll,
                            prng.one_in(2) ? Algorithm::Ring : Algorithm::Direct, ranks(n, first),
                            prng.between(1, 3) * 1000},
             stream, after});
    }
    require_equal_runs(w, switched(16, 1'000'003, 5));
    require_equal_runs(w, cluster(4, prng.one_in(2), {}, 70));
  }
}

TEST_CASE("an all-to-all over nodes of the preset is taken whole") {
  Topology topology = sim::default_topology(32);
  BareCollective collective{CollectiveKind::AllToAll, Algorithm::Direct, ranks(32), 1'000'000};
  CHECK(takes(topology, collective));
  require_equal_runs(of(collective), topology);
}
