// SPDX-License-Identifier: BSD-3-Clause
// When data that a node lacks can reach the ranks that need it, worked out by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "core/bounds/bounds.h"
#include "core/bounds/entry.h"
#include "core/topology/topology_text.h"
#include "sim/machines/presets.h"

using namespace reshard;

namespace {

// Whole bytes pass: two of them at 50 GB/s are 40 ps.
bool near(std::int64_t bound_ps, std::int64_t exact_ps) {
  return bound_ps <= exact_ps && bound_ps >= exact_ps - 40;
}

}  // namespace

TEST_CASE("what several ranks of a node need enters early, or once for each") {
  constexpr Int128 kGb = 1'000'000'000;
  // L 2.7 us, l 0.7 us, 400 GB/s.
  auto bound = [](std::vector<Int128> by_needers, Int128 first, Int128 at_need) {
    return node_entry_bound_ps(by_needers, {first, std::min(first, at_need), 400 * kGb, at_need,
                                            2'700'000, 700'000, 700'000});
  };
  CHECK(bound({}, 400 * kGb, 400 * kGb) == 0);
  CHECK(bound({0, 0}, 400 * kGb, 400 * kGb) == 0);
  // Straight: 1.31072 us.
  CHECK(near(bound({0, 524'288}, 400 * kGb, 400 * kGb), 4'010'720));
  // x = 400 (t - 3.4), 2 (s - x) = 400 * 0.7.
  CHECK(near(bound({0, 0, 524'288}, 400 * kGb, 400 * kGb), 4'360'720));
  // Those of four enter early, 147,456 of them and 120,000 of the others; the others enter late.
  CHECK(near(bound({0, 400'000, 0, 0, 147'456}, 400 * kGb, 400 * kGb), 4'068'640));
  CHECK(near(bound({0, 280'000, 0, 0, 200'000}, 400 * kGb, 400 * kGb), 3'900'000));
  // Half of the ranks hold it, and half need it: 200 GB/s until 3.4 us and from t - 0.7 us on.
  CHECK(near(bound({0, 262'144}, 200 * kGb, 200 * kGb), 4'010'720));
  // Half of them hold it: another 200 GB/s from 3.4 us on.
  CHECK(near(bound({0, 262'144}, 200 * kGb, 400 * kGb), 3'705'360));
}

TEST_CASE("a node's entry of a request is from its holders at first, to its needers at last") {
  Topology topology = sim::find_topology("dgx-h100:2");
  auto cut_ps = [&](const char* from, const char* to) {
    MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("4x4"));
    return bound_of(Request(parse_layout("32,128,64", "f32", mesh, from),
                            parse_layout("32,128,64", "f32", mesh, to)),
                    topology)
        .cut_ps;
  };
  // 512 KiB into each node: each element for two ranks of it, from one holder each.
  CHECK(near(cut_ps("S(0)R", "RS(1)"), 4'360'720));
  // Four ranks of a node hold what four of the other need, 64 KiB each.
  CHECK(near(cut_ps("S(0)S(1)", "S(1)S(0)"), 4'010'720));
  // The same to all eight.
  CHECK(near(cut_ps("S(0)S(1)", "S(1)S(1)"), 3'705'360));
  // All eight hold what four need.
  CHECK(near(cut_ps("S(0)S(1)", "S(2)S(0)"), 3'705'360));
  CHECK(cut_ps("RR", "S(0)S(1)") == 0);
  CHECK(cut_ps("S(0)R", "S(0)S(1)") == 0);
}

TEST_CASE("what has few holders leaves by others when it may be with them, over whatever route") {
  // 2 us between nodes, 5 us inside: from 4 us on another node's ranks may send.
  Topology topology = build_topology(
      parse_topology("reshard-topology 1\nname slow\ndevices 2\nnodes 2\nport nvlink 450GB/s\n"
                     "port nic 50GB/s\n"
                     "route within via nvlink.out nvlink.in latency 5us transport nvlink\n"
                     "route between via nic.out nic.in latency 2us transport network\n",
                     "slow.topo"),
      std::nullopt);
  auto mesh = [](const char* text, const char* ranks) {
    return std::make_shared<const Mesh>(parse_mesh(text, ranks));
  };
  Request request(parse_layout("900000", "u8", mesh("1", "2"), "R"),
                  parse_layout("900000", "u8", mesh("3", "0,1,3"), "S(0)"));
  // 600 kB enter node 0: 2 us at 50 GB/s, then 5 us at 100 GB/s.
  CHECK(near(bound_of(request, topology).cut_ps, 9'000'000));
}

TEST_CASE("a network that multicasts may make one entry of several") {
  NodeTemplate node = sim::find_topology("dgx-h100:2").node();
  node.machine.sharp = true;
  Topology multicasts("multicasts", node, {}, 2);
  MeshRef mesh = std::make_shared<const Mesh>(parse_mesh("4x4"));
  Request request(parse_layout("32,128,64", "f32", mesh, "S(0)R"),
                  parse_layout("32,128,64", "f32", mesh, "RS(1)"));
  Bound all = bound_of(request, multicasts, Switches::Forward),
        once = bound_of(request, multicasts, Switches::Reduce);
  CHECK(once.cut_ps < all.cut_ps);
}
