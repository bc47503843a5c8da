// SPDX-License-Identifier: BSD-3-Clause
// The bounds against slow, obvious definitions: per element for In(X) and receipts, per pair of devices for cap_in(X) and latencies, and a search over all plans
// for the least receipts of small cases.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/bounds.h"
#include "core/topology/topology_text.h"
#include "tests/core/planners/bounds_oracle.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

// Machines whose routes mix all kinds of hops.
std::vector<Topology> machines() {
  std::string head = "reshard-topology 1\nname m\n";
  std::vector<std::pair<std::string, std::int64_t>> texts_and_nodes{
      {"devices 4\ncount nodes\nport a 5GB/s in 7GB/s\nport n 3GB/s in 2GB/s\ngroup low 0-1\ngroup high 2-3\ngroup first 0\n"
       "route within via a.out a.in latency 3us transport nvlink\nroute between via n.out n.in latency 9us transport network\n",
       3},
      {"devices 6\ncount nodes\nport a 5GB/s\nshared host 4GB/s\nshared nic 9GB/s\nfabric spine 11GB/s\ngroup s0 0-2\ngroup s1 3-5\n"
       "route pairs 0-3 1-4 via a.out a.in latency 1us transport nvlink\nroute s0 to s1 via host latency 5us cap 1GB/s transport host\n"
       "route s1 to s0 via a.out host latency 7us transport host\nroute within via a.out host a.in latency 6us transport pcie\n"
       "route between via source.nic spine destination.nic latency 10us transport network\n",
       2},
      {"devices 3\ncount nodes\nport a 5GB/s\nshared host 4GB/s\nfabric spine 11GB/s\n"
       "route pairs 0-1 1-2 via host latency 1us transport host\nroute within via a.out spine latency 2us transport pcie\n"
       "route between via spine a.in latency 10us transport network\n",
       4},
      {"devices 4\ncount nodes\nport a 5GB/s\nport b 6GB/s\nshared host 40GB/s\ngroup odd 1 3\ngroup pair 0 3\n"
       "route odd via a.out b.in latency 1us transport pcie\nroute odd pair via b.out host latency 2us transport pcie\n"
       "route within via a.out a.in latency 2us transport pcie\nroute between via source.host b.in latency 1us transport network\n",
       3},
      // The node's host memory is the first resource of routes of both kinds, by two names.
      {"devices 4\ncount nodes\nport a 90GB/s\nshared host 4GB/s\nroute pairs 0-1 via a.in a.out latency 1us transport pcie\n"
       "route within via host a.in latency 2us transport host\nroute between via destination.host a.in latency 4us transport network\n",
       3},
      // And the last.
      {"devices 4\ncount nodes\nport a 90GB/s\nshared host 4GB/s\nroute within via a.out host latency 2us transport host\n"
       "route between via a.out source.host latency 4us transport network\n",
       3},
  };
  std::vector<Topology> out;
  for (const auto& [text, nodes] : texts_and_nodes) out.push_back(build_topology(parse_topology(head + text, "m.topo"), nodes));
  return out;
}

Placement random_placement(Prng& prng, int dims, bool may_be_partial) {
  std::int64_t kind = prng.below(may_be_partial ? 5 : 4);
  if (kind == 4) return Placement::partial(ReduceOp::Sum);
  if (kind == 0 || dims == 0) return Placement::replicate();
  int dim = static_cast<int>(prng.below(dims));
  return kind == 3 ? Placement::strided_shard(dim, prng.between(2, 3)) : Placement::shard(dim);
}

MeshRef random_mesh(Prng& prng, std::int64_t devices) {
  std::vector<std::int32_t> shape;
  std::int64_t size = 1;
  for (std::int64_t axes = prng.between(1, 3); axes > 0; --axes) {
    shape.push_back(static_cast<std::int32_t>(prng.between(1, std::min<std::int64_t>(4, devices / size))));
    size *= shape.back();
  }
  std::vector<Rank> all;
  for (std::int64_t device = 0; device < devices; ++device) all.push_back(static_cast<Rank>(device));
  prng.shuffle(all);
  all.resize(static_cast<std::size_t>(size));
  return std::make_shared<const Mesh>(shape, all);
}

Request random_request(Prng& prng, std::int64_t devices) {
  for (;;) {
    Shape shape;
    for (std::int64_t dims = prng.below(4); dims > 0; --dims) shape.push_back(prng.below(7));
    MeshRef source = random_mesh(prng, devices), destination = prng.one_in(2) ? source : random_mesh(prng, devices);
    std::vector<Placement> from, to;
    for (int axis = 0; axis < source->axes(); ++axis) from.push_back(random_placement(prng, shape.size(), true));
    for (int axis = 0; axis < destination->axes(); ++axis) to.push_back(random_placement(prng, shape.size(), true));
    try {
      return Request(Layout(shape, DType::F32, source, from), Layout(shape, DType::F32, destination, to));
    } catch (const InputError&) {
      // A forbidden transition: draw again.
    }
  }
}

TEST_CASE("demands, capacities and latencies against the definitions") {
  std::vector<Topology> topologies = machines();
  std::int64_t sets_compared = 0, partial = 0, kept = 0, cross_mesh = 0;
  for (std::uint64_t seed = 0; seed < 2500; ++seed) {
    Prng prng(seed);
    const Topology& topology = topologies[static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(topologies.size())))];
    Request request = random_request(prng, topology.devices());
    CAPTURE(seed, request.text());
    partial += request.fold().fold_count > 1;
    kept += request.fold().addend_count > request.fold().fold_count;
    cross_mesh += !request.same_mesh();

    CutSets sets(topology, request.ranks());
    RequestDemand demand = demand_of(request, sets);
    Items items = items_of(request);
    std::map<std::string, std::set<Rank>> expected = sets_of(topology, request.ranks());
    REQUIRE(sets.size() == expected.size());
    for (std::size_t set = 0; set < sets.size(); ++set) {
      INFO(sets.name(set));
      REQUIRE(expected.count(sets.name(set)) == 1);
      const std::set<Rank>& members = expected.at(sets.name(set));
      REQUIRE((demand.in_bytes[set] == in_bytes(items, members)));
      REQUIRE((sets.capacity_in(set) == capacity_into(topology, request.ranks(), members)));
      ++sets_compared;
    }
    if (request.ranks().size() < 2) continue;
    REQUIRE((demand.receipts_bytes[0] == receipts_bytes(items)));
    REQUIRE(least_volume_bytes(request) == static_cast<std::int64_t>(receipts_bytes(items)));
    REQUIRE(bound_of(request, topology).latency_ps == latency_ps(topology, request.ranks(), items));
  }
  // The draws reach what they are meant to.
  CHECK(sets_compared > 40000);
  CHECK(partial > 300);
  CHECK(kept > 30);
  CHECK(cross_mesh > 800);
}

TEST_CASE("a plain transfer enters the sets that hold its destination and not its source") {
  std::int64_t compared = 0;
  for (const Topology& topology : machines()) {
    std::vector<Rank> job;
    for (std::int32_t r = 0; r < topology.devices(); ++r)
      if (r % 5 != 2) job.push_back(static_cast<Rank>(r));
    CutSets sets(topology, job);
    std::map<std::string, std::set<Rank>> members = sets_of(topology, job);
    for (Rank source : job)
      for (Rank destination : job) {
        if (source == destination) continue;
        std::vector<Int128> in_bytes(sets.size(), 0);
        add_transfer(in_bytes, sets, source, destination, 7);
        for (std::size_t set = 0; set < sets.size(); ++set) {
          const std::set<Rank>& inside = members.at(sets.name(set));
          REQUIRE((in_bytes[set] == (inside.count(destination) > 0 && inside.count(source) == 0 ? 7 : 0)));
          ++compared;
        }
      }
  }
  CHECK(compared > 10000);
}

// One element, addends with several holders each, on nodes of two devices: the receipts that the bound states per level against the fewest transfers of any plan.
TEST_CASE("no plan needs fewer receipts than the volume bound says, and often one needs no more") {
  std::string text =
      "reshard-topology 1\nname m\ndevices 2\ncount nodes\nport a 1GB/s\nroute within via a.out a.in latency 1us transport pcie\n"
      "route between via a.out a.in latency 1us transport network\n";
  Topology topology = build_topology(parse_topology(text, "m.topo"), 4);
  std::int64_t compared = 0, tight = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Prng prng(seed);
    std::vector<Rank> all;
    for (std::int32_t r = 0; r < 8; ++r) all.push_back(static_cast<Rank>(r));
    prng.shuffle(all);
    auto addends = static_cast<std::int32_t>(prng.between(1, 3)), copies = static_cast<std::int32_t>(prng.between(1, 2));
    MeshRef source = std::make_shared<const Mesh>(std::vector{addends, copies}, std::vector<Rank>(all.begin(), all.begin() + addends * copies));
    prng.shuffle(all);
    auto needers = static_cast<std::int32_t>(prng.between(1, 4));
    MeshRef destination = std::make_shared<const Mesh>(std::vector{needers}, std::vector<Rank>(all.begin(), all.begin() + needers));
    Request request(Layout({}, DType::F32, source, {Placement::partial(), Placement::replicate()}),
                    Layout({}, DType::F32, destination, {Placement::replicate()}));
    CAPTURE(seed, request.text());
    CutSets sets(topology, request.ranks());
    RequestDemand demand = demand_of(request, sets);
    for (std::size_t l = 0; l < sets.levels().size(); ++l) {
      // Nodes as super-ranks; as ranks the formula is exact.
      if (sets.levels()[l].names.size() > 4) continue;
      std::int64_t stated = static_cast<std::int64_t>(demand.receipts_bytes[l] / 4),
                   fewest = fewest_receipts(items_of(request), request.ranks(), sets.levels()[l].member_of);
      REQUIRE(stated <= fewest);
      if (l == 0) REQUIRE(stated == fewest);
      ++compared;
      tight += stated == fewest;
      shared += l > 0;
    }
  }
  CHECK(compared > 600);
  CHECK(shared > 300);
  CHECK(tight * 10 > compared * 9);
}

}  // namespace
}  // namespace reshard::test
