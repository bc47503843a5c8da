// SPDX-License-Identifier: BSD-3-Clause
// Links alone: rings of groups over several nodes use every NIC, and lose no byte.
#include "sim/transport/ideal_carrier.h"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "core/base/units.h"
#include "core/topology/topology_text.h"
#include "sim/network/engine.h"
#include "tests/support/prng.h"

using namespace reshard;
using namespace reshard::sim;

namespace {

// Nodes of `devices`: 100 GB/s and 1 us within, 10 GB/s and 5 us between.
Topology machine(std::int64_t nodes, int devices) {
  std::string text = "reshard-topology 1\nname m\ndevices " + std::to_string(devices) +
                     "\ncount nodes\nport nvlink 100GB/s\nport nic 10GB/s\n"
                     "route within via nvlink.out nvlink.in latency 1us transport nvlink\n"
                     "route between via nic.out nic.in latency 5us transport network\n";
  return build_topology(parse_topology(text, "m.topo"), nodes);
}

std::vector<Rank> drawn_group(test::Prng& prng, const Topology& topology, std::size_t size) {
  std::vector<Rank> all(to_index(topology.devices()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = id_of<Rank>(i);
  for (std::size_t i = 0; i < size; ++i)
    std::swap(all[i], all[i + to_index(prng.below(static_cast<std::int64_t>(all.size() - i)))]);
  all.resize(size);
  return all;
}

Timeline timed(const Topology& topology, const BareCollective& collective, Carrier* carrier) {
  return run({{Operation{collective, 0, {}}}}, topology,
             {.record_flows = true, .carriers = {carrier}});
}

std::int64_t bytes_of(const Timeline& timeline) {
  std::int64_t bytes = 0;
  for (const FlowSpan& flow : timeline.flows) bytes += flow.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("Rings enter every node at members of their own and leave it at the one before") {
  test::Prng prng(7);
  for (int drawn = 0; drawn < 300; ++drawn) {
    Topology topology = machine(1 + prng.below(4), 1 + static_cast<int>(prng.below(8)));
    if (topology.devices() < 2) continue;
    auto size = 2 + to_index(prng.below(topology.devices() - 1));
    std::vector<Rank> group = drawn_group(prng, topology, size);
    std::vector<RingPlace> places = rings_of(topology, group, static_cast<std::int32_t>(size));
    std::vector<int> members(to_index(topology.nodes()), 0), positions(size, 0);
    for (Rank rank : group) ++members[to_index(topology.node_of(rank))];
    std::int64_t rings = 1 << 20;
    for (int count : members)
      if (count > 0) rings = std::min<std::int64_t>(rings, count);
    bool several = std::count_if(members.begin(), members.end(), [](int c) { return c > 0; }) > 1;
    if (!several) rings = 1;
    std::int64_t leaving = 0;
    for (std::size_t m = 0; m < size; ++m) {
      const RingPlace& place = places[m];
      REQUIRE(place.rings == rings);
      ++positions[to_index(place.position)];
      auto node = [&](std::int32_t member) { return topology.node_of(group[to_index(member)]); };
      auto self = static_cast<std::int32_t>(m);
      if (place.next >= 0) {
        CHECK(node(place.next) == node(self));
        CHECK(places[to_index(place.next)].previous == self);
      }
      if (place.next_out >= 0) {
        CHECK(node(place.next_out) != node(self));
        CHECK(places[to_index(place.next_out)].previous_out == self);
        ++leaving;
      }
      // What enters a member leaves it: as many rings pass within and from outside as go on.
      std::int64_t in = (place.previous < 0
                             ? 0
                             : rings - (places[to_index(place.previous)].next_out >= 0)) +
                        (place.previous_out >= 0 ? 1 : 0),
                   out = (place.next < 0 ? 0 : rings - (place.next_out >= 0)) +
                         (place.next_out >= 0 ? 1 : 0);
      CHECK(in == rings);
      CHECK(out == rings);
    }
    CHECK(positions == std::vector<int>(size, 1));
    auto nodes = std::count_if(members.begin(), members.end(), [](int c) { return c > 0; });
    CHECK(leaving == (several ? nodes * rings : 0));
  }
}

TEST_CASE("A gather over two nodes of two takes both NICs of each") {
  Topology topology = machine(2, 2);
  IdealCarrier carrier(topology);
  BareCollective gather{
      CollectiveKind::AllGather, Algorithm::Ring, {Rank{0}, Rank{1}, Rank{2}, Rank{3}}, 1'000'000};
  // Three rounds: half a chunk to the other node, 5 us + 500,000 B / 10 GB/s, while the other half
  // goes to the neighbour.
  CHECK(timed(topology, gather, &carrier).end_ps == 3 * 55'000'000);
  // One ring through both nodes has the whole chunk on one NIC.
  CHECK(timed(topology, gather, nullptr).end_ps == 3 * 105'000'000);
  // Whatever the order in which the ranks are listed.
  gather.ranks = {Rank{2}, Rank{0}, Rank{3}, Rank{1}};
  CHECK(timed(topology, gather, &carrier).end_ps == 3 * 55'000'000);
  // On one node it is the one ring, by rank.
  gather.ranks = {Rank{0}, Rank{1}};
  CHECK(timed(topology, gather, &carrier).end_ps == 11'000'000);
}

TEST_CASE("Rings over several NICs carry the bytes of one ring") {
  test::Prng prng(11);
  for (int drawn = 0; drawn < 200; ++drawn) {
    Topology topology = machine(2 + prng.below(3), 1 + static_cast<int>(prng.below(4)));
    auto size = 2 + to_index(prng.below(topology.devices() - 1));
    constexpr CollectiveKind kKinds[] = {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
                                         CollectiveKind::AllReduce, CollectiveKind::AllToAll};
    BareCollective collective{kKinds[prng.below(4)], Algorithm::Ring,
                              drawn_group(prng, topology, size), prng.below(5000)};
    if (collective.kind == BareKind::AllToAll) collective.algorithm = Algorithm::Direct;
    IdealCarrier carrier(topology);
    Timeline over_nics = timed(topology, collective, &carrier),
             one = timed(topology, collective, nullptr);
    CHECK(bytes_of(over_nics) == bytes_of(one));
    CHECK(over_nics.end_ps > 0);
  }
}
