// SPDX-License-Identifier: BSD-3-Clause
// The bounds against slow, obvious definitions: per element for In(X) and receipts, per pair of
// devices for cap_in(X) and latencies, and a search over all plans for the least receipts of small
// cases.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/bounds/bounds.h"
#include "core/bounds/counted_items.h"
#include "core/topology/topology_text.h"
#include "tests/core/bounds/bounds_oracle.h"
#include "tests/support/bounds_cases.h"
#include "tests/support/least_volume.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

TEST_CASE("demands, capacities and latencies against the definitions") {
  std::vector<Topology> topologies = machines();
  std::int64_t sets_compared = 0, partial = 0, kept = 0, zeros = 0, cross_mesh = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Prng prng(seed);
    const Topology& topology = topologies[static_cast<std::size_t>(
        prng.below(static_cast<std::int64_t>(topologies.size())))];
    Request request = random_request(prng, topology.devices(), 1);
    CAPTURE(seed, request.text());
    partial += request.fold().fold_count > 1;
    kept += request.fold().addend_count > request.fold().fold_count;
    zeros += !request.fold().zero_axes.empty();
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
    for (const CutLevel& level : sets.levels()) {
      if (!level.covers_job) continue;
      Int128 sum = 0;
      for (std::size_t set = 0; set < level.names.size(); ++set)
        sum += sets.capacity_in(level.first_set + 2 * set);
      Int128 distinct = capacity_between(topology, request.ranks(), level.member_of);
      REQUIRE((level.capacity == std::min(sum, distinct)));
      shared += distinct < sum;
    }
    if (request.ranks().size() < 2) continue;
    REQUIRE((demand.receipts_bytes[0] == receipts_bytes(items)));
    REQUIRE(test::least_volume_bytes(request) == static_cast<std::int64_t>(receipts_bytes(items)));
    REQUIRE(bound_of(request, topology).latency_ps == latency_ps(topology, request.ranks(), items));
  }
  // The draws reach what they are meant to.
  CHECK(sets_compared > 24000);
  CHECK(partial > 200);
  CHECK(kept > 20);
  CHECK(zeros > 50);
  CHECK(cross_mesh > 500);
  CHECK(shared > 200);
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
          REQUIRE((in_bytes[set] ==
                   (inside.count(destination) > 0 && inside.count(source) == 0 ? 7 : 0)));
          ++compared;
        }
      }
  }
  CHECK(compared > 10000);
}

// One element, addends with several holders each, on nodes of two devices: the receipts that the
// bound states per level against the fewest transfers of any plan.
TEST_CASE("no plan needs fewer receipts than the volume bound says, and often one needs no more") {
  std::string text =
      "reshard-topology 1\nname m\ndevices 2\ncount nodes\nport a 1GB/s\nroute within via a.out "
      "a.in latency 1us transport pcie\n"
      "route between via a.out a.in latency 1us transport network\n";
  Topology topology = build_topology(parse_topology(text, "m.topo"), 4);
  std::int64_t compared = 0, tight = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    Prng prng(seed);
    std::vector<Rank> all;
    for (std::int32_t r = 0; r < 8; ++r) all.push_back(static_cast<Rank>(r));
    prng.shuffle(all);
    auto addends = static_cast<std::int32_t>(prng.between(1, 3)),
         copies = static_cast<std::int32_t>(prng.between(1, 2));
    MeshRef source = std::make_shared<const Mesh>(
        std::vector{addends, copies},
        std::vector<Rank>(all.begin(), all.begin() + addends * copies));
    prng.shuffle(all);
    auto needers = static_cast<std::int32_t>(prng.between(1, 4));
    MeshRef destination = std::make_shared<const Mesh>(
        std::vector{needers}, std::vector<Rank>(all.begin(), all.begin() + needers));
    Request request(Layout({}, DType::F32, source, {Placement::partial(), Placement::replicate()}),
                    Layout({}, DType::F32, destination, {Placement::replicate()}));
    CAPTURE(seed, request.text());
    CutSets sets(topology, request.ranks());
    RequestDemand demand = demand_of(request, sets);
    for (std::size_t l = 0; l < sets.levels().size(); ++l) {
      // Nodes as super-ranks; as ranks the formula is exact.
      if (sets.levels()[l].names.size() > 4) continue;
      std::int64_t stated = static_cast<std::int64_t>(demand.receipts_bytes[l] / 4),
                   fewest = fewest_receipts(items_of(request), request.ranks(),
                                            sets.levels()[l].member_of);
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

// One element among four ranks of two nodes, with up to three addends: the price that the
// bound states at each of its betas against the cheapest of all plans.
TEST_CASE("no plan pays less than the price bound says, and often one pays no more") {
  std::string text =
      "reshard-topology 1\nname m\ndevices 3\ncount nodes\nport a 1GB/s\nroute within via a.out "
      "a.in latency 1us transport pcie\n"
      "route between via a.out a.in latency 1us transport network\n";
  Topology topology = build_topology(parse_topology(text, "m.topo"), 2);
  std::int64_t compared = 0, tight = 0, alone = 0, folded = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Prng prng(seed);
    std::vector<Rank> four;
    for (std::int32_t r = 0; r < 6; ++r) four.push_back(static_cast<Rank>(r));
    prng.shuffle(four);
    four.resize(4);
    auto addends = static_cast<std::int32_t>(prng.between(1, 3)),
         copies = static_cast<std::int32_t>(prng.between(1, 4 / addends)),
         needers = static_cast<std::int32_t>(prng.between(1, 4));
    MeshRef source = std::make_shared<const Mesh>(
        std::vector{addends, copies},
        std::vector<Rank>(four.begin(), four.begin() + addends * copies));
    prng.shuffle(four);
    MeshRef destination = std::make_shared<const Mesh>(
        std::vector{needers}, std::vector<Rank>(four.begin(), four.begin() + needers));
    Request request(Layout({}, DType::U8, source, {Placement::partial(), Placement::replicate()}),
                    Layout({}, DType::U8, destination, {Placement::replicate()}));
    CAPTURE(seed, request.text());
    std::sort(four.begin(), four.end());
    CutSets sets(topology, four);
    RequestDemand demand = demand_of(request, sets);
    if (sets.levels().size() < 2) continue;
    const PriceDemand& price = demand.prices[1];
    auto check = [&](std::int64_t stated, std::int64_t inside, std::int64_t between) {
      std::int64_t cheapest =
          cheapest_receipts(items_of(request), four, sets.levels()[1].member_of, inside, between);
      CAPTURE(inside, between);
      REQUIRE(stated <= cheapest);
      ++compared;
      tight += stated == cheapest;
    };
    auto receipts = static_cast<std::int64_t>(price.alone_bytes.size()) - 1,
         others = static_cast<std::int64_t>(price.other_receipts_bytes);
    for (std::int64_t p = 1; p < 4; ++p)  // beta = p / (p+1)
      check(receipts > 0 ? std::min(receipts * (p + 1), (receipts + 1) * p) : others * p, p + 1, p);
    alone += receipts > 0;
    if (price.fold_price == 0) continue;
    check(static_cast<std::int64_t>(price.fold_cost_bytes), 1, price.fold_price);
    ++folded;
  }
  CHECK(compared > 700);
  CHECK(alone > 10);
  CHECK(folded > 50);
  CHECK(tight * 10 > compared * 8);
}

TEST_CASE("items are what pieces of both sides share, dim by dim") {
  auto items = [](const char* shape, const char* from, const char* to) {
    MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("3"));
    Request request(parse_layout(shape, "f32", mesh, from), parse_layout(shape, "f32", mesh, to));
    TensorKind kind(request, request.ranks());
    CountedItems found(kind);
    std::string out = std::to_string(static_cast<int>(found.count())) + ":";
    found.for_each([&](std::size_t source, std::size_t destination, std::int64_t elements) {
      out += fmt::format(" {}>{}*{}", source, destination, elements);
    });
    return out;
  };
  CHECK(items("", "R", "R") == "1: 0>0*1");
  CHECK(items("0,4", "S0", "S1") == "0:");
  CHECK(items("4,2", "S0", "S1") == "4: 0>0*2 0>1*2 1>0*2 1>1*2");
  // Destination pieces hold elements 0 and 3, 1 and 4, 2.
  CHECK(items("5", "S0", "_S(0,2)") == "5: 0>0*1 0>1*1 1>0*1 1>2*1 2>1*1");
  CHECK(items("5", "R", "_S(0,2)") == "3: 0>0*2 0>1*2 0>2*1");
}

TEST_CASE("sets need a device for every rank") {
  for (const Topology& topology : machines()) {
    Rank last{topology.devices() - 1}, beyond{topology.devices()};
    CHECK(CutSets(topology, {Rank{0}, last}).ranks().back() == last);
    CHECK_THROWS_AS(CutSets(topology, {last}).name(0), CheckFailure);  // one rank has no sets
    CHECK(CutSets(topology, {}).size() == 0);
    CHECK_THROWS_WITH(CutSets(topology, {Rank{0}, beyond}),
                      Catch::Contains("expected a device for every rank, found 12 devices and "
                                      "rank 12"));
  }
}

// Three addends with two copies each on nodes of four devices, needed on the last node only.
TEST_CASE("addends with few holders are packed first, and one that has no room is skipped") {
  Topology topology = build_topology(
      parse_topology("reshard-topology 1\nname m\ndevices 4\ncount nodes\nport a 1GB/s\n"
                     "route within via a.out a.in latency 1us transport pcie\n"
                     "route between via a.out a.in latency 1us transport network\n",
                     "m.topo"),
      4);
  auto receipts = [&](std::vector<int> holders) {
    std::vector<Rank> ranks;
    for (int rank : holders) ranks.push_back(Rank{rank});
    MeshRef source = std::make_shared<const Mesh>(std::vector<std::int32_t>{3, 2}, ranks),
            destination = std::make_shared<const Mesh>(std::vector<std::int32_t>{1},
                                                       std::vector<Rank>{Rank{15}});
    Request request(Layout({}, DType::F32, source, {Placement::partial(), Placement::replicate()}),
                    Layout({}, DType::F32, destination, {Placement::replicate()}));
    return static_cast<int>(
        demand_of(request, CutSets(topology, request.ranks())).receipts_bytes.at(1) / 4);
  };
  CHECK(receipts({0, 1, 2, 3, 4, 5}) == 2);  // nodes 0 | 0 | 1
  CHECK(receipts({0, 4, 1, 2, 5, 6}) == 2);  // nodes 0, 1 | 0 | 1
  CHECK(receipts({0, 1, 2, 4, 5, 8}) == 2);  // nodes 0 | 0, 1 | 1, 2
  CHECK(receipts({0, 4, 1, 5, 8, 9}) == 2);  // nodes 0, 1 | 0, 1 | 2
  CHECK(receipts({0, 1, 4, 5, 8, 9}) == 3);  // a node each
}

}  // namespace
}  // namespace reshard::test
