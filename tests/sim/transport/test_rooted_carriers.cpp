// SPDX-License-Identifier: BSD-3-Clause
// Collectives with a root as transports carry them: NCCL's rings take the time of their formula,
// its groups of sends and receives the time of messages, copy engines that of copies.
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "core/topology/topology_text.h"
#include "sim/network/engine.h"
#include "sim/transport/copy_carrier.h"
#include "sim/transport/ideal_carrier.h"
#include "sim/transport/nccl/nccl_carrier.h"

namespace reshard::sim::nccl::rooted_tests {
namespace {

std::shared_ptr<const Topology> machine(std::int64_t nodes = 1) {
  std::string text =
      "reshard-topology 1\nname m\ndevices 8\ncount nodes\ngpu sm90\nport nvlink 450GB/s\n"
      "port nic 50GB/s\n"
      "route within via nvlink.out nvlink.in latency 1us transport nvlink\n"
      "route between via nic.out nic.in latency 5us transport network\n";
  return std::make_shared<const Topology>(build_topology(parse_topology(text, "m.topo"), nodes));
}

std::vector<Rank> ranks(int count) {
  std::vector<Rank> out;
  for (int r = 0; r < count; ++r) out.push_back(Rank{r});
  return out;
}

BareCollective rooted(BareKind kind, int count, std::int64_t bytes, int root = 0) {
  return {kind, default_algorithm(kind), ranks(count), bytes, Rank{root}};
}

Timeline timed(const Topology& topology, const BareCollective& collective, Carrier& carrier) {
  return run({{{collective, 0, {}}}}, topology, {.carriers = {&carrier}});
}

Costs costs_on(const Topology& topology, int count) {
  return Costs(constants_of(""), parameters_of(topology), communicator_of(topology, ranks(count)));
}

}  // namespace

TEST_CASE("a broadcast and a reduce take NCCL's ring, to the picosecond, whatever the root") {
  for (std::int64_t nodes : {1, 2, 4})
    for (std::int64_t bytes : {1, 40'000, 1 << 20, 100'000'007, 1 << 30})
      for (int root : {0, 5}) {
        CAPTURE(nodes, bytes, root);
        auto topology = machine(nodes);
        NcclCarrier carrier(*topology, constants_of(""));
        int n = 8 * static_cast<int>(nodes);
        Costs costs = costs_on(*topology, n);
        std::int64_t expected = std::llround(
            costs.time_us(Function::Broadcast, costs.choose(Function::Broadcast, bytes), bytes) *
            1e6);
        CHECK(timed(*topology, rooted(BareKind::Broadcast, n, bytes, root), carrier).end_ps ==
              expected);
        CHECK(timed(*topology, rooted(BareKind::Reduce, n, bytes, root), carrier).end_ps ==
              expected);
      }
}

TEST_CASE("nothing enters a root that sends, nothing leaves one that receives") {
  auto topology = machine(2);
  NcclCarrier nccl(*topology, constants_of(""));
  IdealCarrier ideal(*topology);
  for (Carrier* carrier : std::initializer_list<Carrier*>{&nccl, &ideal})
    for (BareKind kind :
         {BareKind::Broadcast, BareKind::Reduce, BareKind::Gather, BareKind::Scatter}) {
      BareCollective collective = rooted(kind, 16, 1 << 20, 5);
      Timeline timeline =
          run({{{collective, 0, {}}}}, *topology, {.record_flows = true, .carriers = {carrier}});
      std::vector<std::int64_t> in(16, 0), out(16, 0);
      for (const FlowSpan& flow : timeline.flows) {
        in[static_cast<std::size_t>(to_int(flow.destination))] += flow.bytes;
        out[static_cast<std::size_t>(to_int(flow.source))] += flow.bytes;
      }
      CAPTURE(text(kind));
      CHECK((kind.from_root() ? in : out)[5] == 0);
      // All others get the whole, or their part; or give it.
      for (std::size_t rank = 0; rank < 16; ++rank)
        if (rank != 5) CHECK((kind.from_root() ? in : out)[rank] == (1 << 20));
      std::int64_t sum = 0;
      for (std::int64_t bytes : in) sum += bytes;
      CHECK(sum == 15 * (1 << 20));
    }
}

TEST_CASE("a gather and a scatter are a group of messages at the root") {
  auto topology = machine();
  NcclCarrier carrier(*topology, constants_of(""));
  Costs costs = costs_on(*topology, 8);
  for (std::int64_t bytes : {1, 5'000, 100'000, 1 << 24}) {
    CAPTURE(bytes);
    int channels = std::min(32, 7 * costs.channels_per_message(bytes, false));
    std::int64_t expected = std::llround(
        (costs.transfer_us(7 * bytes, channels) + costs.message_latency_us(bytes, false)) * 1e6);
    for (BareKind kind : {BareKind::Gather, BareKind::Scatter}) {
      std::int64_t found = timed(*topology, rooted(kind, 8, bytes, 3), carrier).end_ps;
      CHECK(std::abs(found - expected) <= expected / 1'000'000 + 1);
    }
  }
}

TEST_CASE("a barrier is an all_reduce of one f32") {
  auto topology = machine();
  NcclCarrier carrier(*topology, constants_of(""));
  CHECK(timed(*topology, {BareKind::Barrier, reshard::Algorithm::Tree, ranks(8), 0}, carrier)
            .end_ps ==
        timed(*topology, {BareKind::AllReduce, reshard::Algorithm::Ring, ranks(8), 4}, carrier)
            .end_ps);
}

TEST_CASE("copy engines gather and scatter, what else has a root is NCCL's") {
  auto topology = machine();
  CopyCarrier copies(*topology, constants_of(""));
  NcclCarrier nccl(*topology, constants_of(""));
  for (BareKind kind : {BareKind::Broadcast, BareKind::Reduce})
    CHECK(timed(*topology, rooted(kind, 8, 1 << 20), copies).end_ps ==
          timed(*topology, rooted(kind, 8, 1 << 20), nccl).end_ps);
  // One copy of each rank into the root's port, against seven that the root launches.
  PointToPoint one{Rank{1}, Rank{0}, 1 << 26};
  std::int64_t copy_ps = run({{{one, 0, {}}}}, *topology, {.carriers = {&copies}}).end_ps;
  std::int64_t gather_ps = timed(*topology, rooted(BareKind::Gather, 8, 1 << 26), copies).end_ps;
  CHECK(gather_ps >= copy_ps);
  CHECK(gather_ps <= 8 * copy_ps);
  CHECK(timed(*topology, rooted(BareKind::Scatter, 8, 1 << 26), copies).end_ps >= gather_ps);
}

}  // namespace reshard::sim::nccl::rooted_tests
