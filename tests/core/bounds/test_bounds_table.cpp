// SPDX-License-Identifier: BSD-3-Clause
// The worked examples: 1 GiB on two nodes of eight GPUs, 450 GB/s NVLink and one 50 GB/s NIC per
// GPU and direction, latencies of 8 us and 20 us, no switch that reduces. A rank's cap_in is 500
// GB/s, a node's 400 GB/s.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/bounds/bounds.h"
#include "core/topology/topology_text.h"
#include "sim/machines/presets.h"
#include "tests/support/least_volume.h"

namespace reshard {
namespace {

Request request_of(const std::string& mesh, const std::string& from, const std::string& to) {
  MeshRef ranks = std::make_shared<const Mesh>(parse_mesh(mesh));
  return Request(parse_layout("16384,16384", "f32", ranks, from),
                 parse_layout("16384,16384", "f32", ranks, to));
}

// `latency`: at all.
Topology eights(std::int64_t nodes, bool latency = true) {
  TopologyDescription description = parse_topology(
      "reshard-topology 1\nname eights\ndevices 8\ncount nodes\n"
      "port nvlink 450GB/s\nport nic 50GB/s\n"
      "route within via nvlink.out nvlink.in latency " +
          std::string(latency ? "8us" : "0") +
          " transport nvlink\n"
          "route between via nic.out nic.in latency " +
          (latency ? "20us" : "0") + " transport network\n",
      "eights.topo");
  return build_topology(description, nodes);
}

constexpr std::int64_t kMiB = 1 << 20;

// Whole MiB, or the test fails.
std::int64_t mib(Int128 bytes) {
  REQUIRE(bytes % kMiB == 0);
  return static_cast<std::int64_t>(bytes / kMiB);
}

// Whole microseconds, rounded half up: the printed digits.
std::string printed_us(std::int64_t ps) { return decimal_text(ps, 1'000'000, 0); }

struct Row {
  std::string mesh, from, to;
  std::int64_t in_max, in_average, total_per_rank, in_node;  // MiB
  std::string rank_us, total_us, node_us, bound_us;
};

TEST_CASE("bounds of the worked examples, to the printed digits") {
  Row row = GENERATE(values<Row>({
      {"4x4", "S0,S1", "S1,S0", 64, 48, 48, 256, "134", "101", "671", "671"},
      {"2x8", "S0,S1", "S1,S0", 64, 56, 56, 256, "134", "117", "671", "671"},
      {"4x4", "S0,S0", "S1,S1", 60, 60, 60, 256, "126", "126", "671", "671"},
      {"4x4", "S0,S0", "R,R", 960, 960, 960, 512, "2013", "2013", "1342", "2013"},
      {"4x4", "R,R", "S0,S0", 0, 0, 0, 0, "0", "0", "0", "0"},
      {"4x4", "P,P", "R,R", 1024, 1024, 1920, 1024, "2147", "4027", "2684", "4027"},
      {"4x4", "P,P", "S0,S0", 64, 64, 960, 512, "134", "2013", "1342", "2013"},
      {"4x4", "P,R", "R,R", 1024, 1024, 1152, 1024, "2147", "2416", "2684", "2684"},
      {"4x4", "R,P", "R,R", 1024, 1024, 1152, 0, "2147", "2416", "0", "2416"},
      {"4x4", "S0,R", "R,S0", 256, 192, 192, 512, "537", "403", "1342", "1342"},
      {"4x4", "S0,S0", "R,S0", 256, 240, 240, 512, "537", "503", "1342", "1342"},
      // Zeros are sent by nobody: the bytes are those of the values that a rank does not hold.
      {"4x4", "S0,S0", "P,P", 0, 0, 0, 0, "0", "0", "0", "0"},
      {"4x4", "S0,R", "P,S1", 0, 0, 0, 0, "0", "0", "0", "0"},
      {"4x4", "S0,S0", "P,R", 192, 192, 192, 0, "403", "403", "0", "413"},
      {"4x4", "S0,S0", "R,P", 192, 192, 192, 512, "403", "403", "1342", "1342"},
      {"4x4", "P,S0", "S0,R", 256, 256, 384, 512, "537", "805", "1342", "1342"},
      {"2x8", "P,S0", "S0,R", 512, 512, 512, 512, "1074", "1074", "1342", "1342"},
  }));
  CAPTURE(row.mesh, row.from, row.to);
  Topology topology = eights(2);
  Request request = request_of(row.mesh, row.from, row.to);
  CutSets sets(topology, request.ranks());
  RequestDemand demand = demand_of(request, sets);
  REQUIRE(sets.levels().size() == 2);
  const CutLevel &ranks = sets.levels()[0], &nodes = sets.levels()[1];
  REQUIRE(ranks.names.size() == 16);
  REQUIRE(nodes.names.size() == 2);

  Int128 in_max = 0, in_sum = 0, in_node = 0;
  for (std::size_t set = 0; set < 16; ++set) {
    CHECK((sets.capacity_in(ranks.first_set + 2 * set) == 500'000'000'000));
    in_max = std::max(in_max, demand.in_bytes[ranks.first_set + 2 * set]);
    in_sum += demand.in_bytes[ranks.first_set + 2 * set];
  }
  for (std::size_t set = 0; set < 2; ++set) {
    CHECK((sets.capacity_in(nodes.first_set + 2 * set) == 400'000'000'000));
    in_node = std::max(in_node, demand.in_bytes[nodes.first_set + 2 * set]);
  }
  CHECK(mib(in_max) == row.in_max);
  CHECK(mib(in_sum / 16) == row.in_average);
  CHECK(mib(demand.receipts_bytes[0] / 16) == row.total_per_rank);
  CHECK(mib(in_node) == row.in_node);

  CHECK(printed_us(transfer_ps(in_max, 500'000'000'000)) == row.rank_us);
  CHECK(printed_us(transfer_ps(demand.receipts_bytes[0], 16 * Int128{500'000'000'000})) ==
        row.total_us);
  CHECK(printed_us(transfer_ps(in_node, 400'000'000'000)) == row.node_us);
  CHECK(printed_us(bound_of(request, eights(2, false)).time_ps()) == row.bound_us);
  CHECK(test::least_volume_bytes(request) == row.total_per_rank * 16 * kMiB);
  // What no GPU of the node has comes from the other node.
  CHECK(bound_of(request, topology).latency_ps == (row.in_node > 0  ? 20'000'000
                                                   : row.in_max > 0 ? 8'000'000
                                                                    : 0));
}

TEST_CASE("a bound names what limits it") {
  Topology topology = eights(2);
  CHECK(bound_of(request_of("4x4", "S0,S1", "S1,S0"), topology).limited_by() == LimitedBy::Cut);
  CHECK(bound_of(request_of("4x4", "P,P", "R,R"), topology).limited_by() == LimitedBy::Volume);
  Bound nothing = bound_of(request_of("4x4", "R,R", "S0,S0"), topology);
  CHECK(nothing.limited_by() == LimitedBy::None);
  CHECK(nothing.time_ps() == 0);
  // 16 elements of f32: 4 bytes into each of 4 ranks from each of 3 others; 12 bytes take 1 ps less
  // than a nanosecond.
  MeshRef four = std::make_shared<const Mesh>(parse_mesh("4"));
  Bound tiny = bound_of(
      Request(parse_layout("4,4", "f32", four, "S0"), parse_layout("4,4", "f32", four, "S1")),
      topology);
  CHECK(tiny.limited_by() == LimitedBy::Cut);
  CHECK(tiny.cut_ps == 8'000'027);  // 12 bytes at 450e9 bytes/s: 26.67 ps
  CHECK(tiny.latency_ps == 8'000'000);
  // One byte has a latency, too.
  MeshRef first = std::make_shared<const Mesh>(parse_mesh("1")),
          second = std::make_shared<const Mesh>(parse_mesh("1", "1"));
  Bound byte = bound_of(
      Request(parse_layout("1", "u8", first, "R"), parse_layout("1", "u8", second, "R")), topology);
  CHECK((byte.cut_ps == 8'000'003 && byte.volume_ps == 8'000'002));
  CHECK(byte.latency_ps == 8'000'000);
  CutSets sets(topology, {Rank{0}, Rank{1}});
  CHECK_THROWS_AS(cut_bound_ps({1}, sets), CheckFailure);
  std::vector<Int128> in_bytes;
  CHECK_THROWS_AS(add_transfer(in_bytes, sets, Rank{0}, Rank{1}, 1), CheckFailure);
}

TEST_CASE("of bounds that are equal the first is named") {
  const std::tuple<Bound, std::int64_t, const char*> rows[] = {
      {{0, 0, 0, 0, 0}, 0, "none"},    {{3, 3, 3, 3, 3}, 3, "cut"},
      {{2, 1, 2, 1, 1}, 2, "cut"},     {{1, 2, 2, 1, 2}, 2, "volume"},
      {{1, 1, 2, 2, 2}, 2, "price"},   {{1, 1, 1, 2, 2}, 2, "holder"},
      {{1, 1, 1, 1, 2}, 2, "latency"},
  };
  for (const auto& [bound, time, limit] : rows) {
    CHECK(bound.time_ps() == time);
    CHECK(text(bound.limited_by()) == limit);
  }
}

// [P,P] -> [S0,S0] over q = 8 nodes of 8 GPUs. In(node) = T/8, but (q-1)/q * T enters each node on
// average; and as much must leave each: In of its complement.
TEST_CASE("partial sums over many nodes are limited between nodes, not by what one node needs") {
  Topology topology = eights(8);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("8x8"));
  Request request(parse_layout("16384,16384", "f32", mesh, "P,P"),
                  parse_layout("16384,16384", "f32", mesh, "S0,S0"));
  CutSets sets(topology, request.ranks());
  RequestDemand demand = demand_of(request, sets);
  CHECK(mib(demand.receipts_bytes[0]) == 63 * 1024);
  CHECK(mib(demand.receipts_bytes[1]) == 7 * 1024);
  CHECK(mib(demand.in_bytes[sets.levels()[1].first_set]) == 128);
  // 7 GiB into 8 * 400e9 bytes/s take 2349 us; 63 GiB into 64 * 500e9 bytes/s only 2114 us.
  Bound bound = bound_of(demand, sets);
  CHECK(bound.volume_ps ==
        20'000'000 + transfer_ps(Int128{7} * 1024 * kMiB, 8 * Int128{400'000'000'000}));
  CHECK(printed_us(bound.volume_ps - 20'000'000) == "2349");
  CHECK(mib(demand.in_bytes[sets.levels()[1].first_set + 1]) == 896);
  CHECK(bound.cut_ps == bound.volume_ps);
}

TEST_CASE("elements of twice the width take twice as long on links without latency") {
  Topology topology = eights(2, false);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("2x8"));
  auto bound = [&](const char* dtype, const std::string& from, const std::string& to) {
    return bound_of(Request(parse_layout("1024,1024", dtype, mesh, from),
                            parse_layout("1024,1024", dtype, mesh, to)),
                    topology);
  };
  const std::vector<std::string> on_axis{"R", "S(0)", "S(1)", "P(sum)"};
  std::int64_t priced = 0;
  auto is_twice = [](std::int64_t wide, std::int64_t narrow) {
    return std::abs(wide - 2 * narrow) <= 2;
  };
  for (const std::string& a : on_axis)
    for (const std::string& b : on_axis)
      for (const std::string c : {"R", "S(0)", "S(1)"})
        for (const std::string d : {"R", "S(0)", "S(1)"}) {
          CAPTURE(a + b + " -> " + c + d);
          Bound wide = bound("f64", a + b, c + d), narrow = bound("f32", a + b, c + d);
          CHECK(is_twice(wide.cut_ps, narrow.cut_ps));
          CHECK(is_twice(wide.volume_ps, narrow.volume_ps));
          CHECK(is_twice(wide.price_ps, narrow.price_ps));
          CHECK(is_twice(wide.holder_ps, narrow.holder_ps));
          priced += wide.price_ps > 0 ? 1 : 0;
        }
  CHECK(priced > 20);
}

// 1 GiB on 16 ranks of two nodes, all of it needed by all.
TEST_CASE("switches that reduce on the way leave each rank one receipt, and each node one") {
  auto on = [](const std::string& lines) {
    return build_topology(
        parse_topology("reshard-topology 1\nname m\ndevices 8\nnodes 2\n" + lines +
                           "port nvlink 450GB/s\nport nic 50GB/s\n"
                           "route within via nvlink.out nvlink.in latency 0 transport nvlink\n"
                           "route between via nic.out nic.in latency 0 transport network\n",
                       "m.topo"),
        std::nullopt);
  };
  struct Row {
    std::string lines, mesh, from, to, cut_us, volume_us;
  };
  Row row = GENERATE(values<Row>({
      // On one node: seven eighths twice over 450 GB/s; once with switches that reduce.
      {"", "8", "P", "R", "2386", "4176"},
      {"reduces nvlink\n", "8", "P", "R", "2386", "2386"},
      {"reduces network\n", "8", "P", "R", "2386", "2386"},
      {"", "8", "P", "S0", "2088", "2088"},
      {"reduces nvlink\n", "8", "P", "S0", "2088", "298"},
      // On two: 2 + 2 - 2 receipts of a node, 1 + 1 with a network that reduces: no less.
      {"", "16", "P", "R", "2684", "4027"},
      {"reduces nvlink\n", "16", "P", "R", "2684", "2684"},
      {"reduces nvlink\nreduces network\n", "16", "P", "R", "2684", "2684"},
      // What is not reduced stays as it is.
      {"", "8", "S0", "R", "2088", "2088"},
      {"reduces nvlink\nreduces network\n", "8", "S0", "R", "2088", "2088"},
  }));
  CAPTURE(row.lines, row.mesh, row.from, row.to);
  Bound bound = bound_of(request_of(row.mesh, row.from, row.to), on(row.lines));
  CHECK(printed_us(bound.cut_ps) == row.cut_us);
  CHECK(printed_us(bound.volume_ps) == row.volume_us);
}

// A flat all-to-all over p = 1024 ranks in q = 128 nodes, T = 4 GiB: 10^6 items. In(rank) = T/p (1
// - 1/p), In(node) = T/q (1 - 1/q), and as much leaves each.
TEST_CASE("a thousand ranks and a million items") {
  Topology topology = eights(128);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("32x32"));
  Request request(parse_layout("32768,32768", "f32", mesh, "S0,S0"),
                  parse_layout("32768,32768", "f32", mesh, "S1,S1"));
  CutSets sets(topology, request.ranks());
  RequestDemand demand = demand_of(request, sets);
  Int128 total = Int128{4} * 1024 * kMiB;
  for (std::size_t set = 0; set < sets.size(); ++set) {
    bool of_rank = set < 2 * 1024;
    std::int64_t parts = of_rank ? 1024 : 128;
    REQUIRE((demand.in_bytes[set] == total / parts * (parts - 1) / parts));
    // Into and out of a rank: NVLink and NIC. Into and out of a node: its NICs.
    REQUIRE((sets.capacity_in(set) == (of_rank ? 500'000'000'000 : 400'000'000'000)));
  }
  CHECK(sets.size() == 2 * (1024 + 128));
  CHECK((demand.receipts_bytes[0] == total / 1024 * 1023));
  CHECK(bound_of(demand, sets).cut_ps ==
        20'000'000 + transfer_ps(total / 128 * 127 / 128, 400'000'000'000));
}

TEST_CASE("many devices of one node, all alike") {
  Topology topology = sim::find_topology("nvswitch:4096");
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("4096"));
  Request request(parse_layout("4096,64", "u8", mesh, "S0"),
                  parse_layout("4096,64", "u8", mesh, "R"));
  CutSets sets(topology, request.ranks());
  CHECK(sets.size() == 2 * 4096);
  for (std::size_t set = 0; set < sets.size(); ++set)
    REQUIRE((sets.capacity_in(set) == 450'000'000'000));
  // All but 64 of 4096 * 64 bytes into every rank, out of 450e9 bytes/s.
  CHECK(bound_of(request, topology).cut_ps == 700'000 + transfer_ps(4095 * 64, 450'000'000'000));
}

TEST_CASE("what a bound cannot be worked out for is refused, not tried") {
  // Three times 2^32 pairs, and three times 2^30 in each of 16 addends that are kept.
  auto moved = [](const char* axes, const char* from, const char* to) {
    MeshRef ranks = std::make_shared<const Mesh>(parse_mesh(axes));
    return bound_of(Request(parse_layout("1048576,1048576", "u8", ranks, from),
                            parse_layout("1048576,1048576", "u8", ranks, to)),
                    sim::find_topology("nvswitch:1048576"));
  };
  CHECK_THROWS_WITH(moved("1048576", "S0", "S1"), Catch::Contains("at most 2^33 pairs"));
  CHECK_THROWS_WITH(moved("65536", "S0", "S1"), Catch::Contains("at most 2^33 pairs"));
  CHECK_THROWS_WITH(moved("16x32768", "P,S0", "P,S1"), Catch::Contains("at most 2^33 pairs"));
  Topology topology = sim::find_topology("dgx-h100");
  MeshRef sixteen = std::make_shared<const Mesh>(parse_mesh("16"));
  Request large(parse_layout("16", "u8", sixteen, "S0"), parse_layout("16", "u8", sixteen, "R"));
  CHECK_THROWS_WITH(
      bound_of(large, topology),
      "topology dgx-h100:1: expected a device for every rank, found 8 devices and rank 15");
}

// 2^62 bytes into each of 8 ranks at one byte per second would be 10^30 ps.
TEST_CASE("times beyond int64 are cut, never wrapped") {
  Topology topology =
      build_topology(parse_topology("reshard-topology 1\nname slow\ndevices 8\nport a 1\nroute "
                                    "within via a.out a.in latency 0 transport pcie\n",
                                    "slow.topo"),
                     std::nullopt);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("8"));
  Request request(parse_layout("4611686018427387904", "u8", mesh, "P"),
                  parse_layout("4611686018427387904", "u8", mesh, "R"));
  Bound bound = bound_of(request, topology);
  CHECK(bound.cut_ps == std::numeric_limits<std::int64_t>::max());
  CHECK(bound.volume_ps == std::numeric_limits<std::int64_t>::max());
  CHECK(test::least_volume_bytes(request) == std::numeric_limits<std::int64_t>::max());
}

// From a replicated node to g shards: T/g each, In(node) = T; the way back is a plain gather.
TEST_CASE("bounds across meshes") {
  Topology topology = eights(2);
  MeshRef left = std::make_shared<const Mesh>(parse_mesh("8", "0-7")),
          right = std::make_shared<const Mesh>(parse_mesh("8", "8-15"));
  Request scatter(parse_layout("16384,16384", "f32", left, "R"),
                  parse_layout("16384,16384", "f32", right, "S0"));
  Bound bound = bound_of(scatter, topology);
  CHECK(bound.cut_ps == 20'000'000 + transfer_ps(Int128{1024} * kMiB, 400'000'000'000));
  CHECK(printed_us(bound.cut_ps) == "2704");
  CHECK(bound.latency_ps == 20'000'000);
  CHECK(test::least_volume_bytes(scatter) == 1024 * kMiB);

  Request gather(parse_layout("16384,16384", "f32", left, "S0"),
                 parse_layout("16384,16384", "f32", right, "R"));
  // Of a rank's 1 GiB 50 GB/s come straight from 20 us on, 7 x 50 GB/s by the others of its node
  // from 28 us on: 8 us x 50 GB/s are there then, the rest comes at 400 GB/s.
  CHECK(bound_of(gather, topology).cut_ps ==
        28'000'000 + transfer_ps(Int128{1024} * kMiB - 400'000, 400'000'000'000));
  CHECK(test::least_volume_bytes(gather) == 8 * 1024 * kMiB);
}

}  // namespace

TEST_CASE("links alone get nothing from switches that could reduce") {
  Request request = request_of("8x2", "P,P", "R,R");
  Topology reducing = sim::find_topology("dgx-h100:2");
  NodeTemplate node = reducing.node();
  node.machine.nvls = false;
  Topology forwarding(reducing.name(), node, {}, reducing.nodes());
  Bound links = bound_of(request, reducing, Switches::Forward);
  CHECK(links.time_ps() == bound_of(request, forwarding, Switches::Reduce).time_ps());
  CHECK(links.time_ps() > bound_of(request, reducing, Switches::Reduce).time_ps());
}

TEST_CASE("what a node lacks comes straight, or over two routes") {
  // 16 ranks, 50 GB/s straight from 20 us on, 350 GB/s over two routes from 28 us on.
  auto bound = [](const char* elements) {
    MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("16"));
    Request request(parse_layout(elements, "f32", mesh, "S(0)"),
                    parse_layout(elements, "f32", mesh, "R"));
    return bound_of(request, eights(2)).cut_ps;
  };
  // Of 400,000 B half are on the other node: 4 us by a rank's own NIC, before anything relayed can
  // be there.
  CHECK(bound("100000") == 24'000'000);
  // 400,000 B have come straight when the first relayed byte does: then it may just be over.
  CHECK(bound("200000") == 28'000'000);
  // Another 400,000 B come at 400 GB/s.
  CHECK(bound("400000") == 29'000'000);
}

}  // namespace reshard
