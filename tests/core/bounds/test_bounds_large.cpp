// SPDX-License-Identifier: BSD-3-Clause
// Large rates and large jobs.
#include <catch2/catch.hpp>

#include <limits>

#include "core/bounds/bounds.h"
#include "core/topology/topology_text.h"
#include "sim/machines/presets.h"

namespace reshard {

TEST_CASE("what gets through a passage takes whole picoseconds, rounded up, whatever the rate") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  auto ps = [](Int128 bytes, Int128 rate, std::int64_t latency_ps) {
    return Passage{rate, latency_ps}.least_ps(bytes);
  };
  CHECK(ps(0, 5, 7) == 0);
  CHECK(ps(1, 3, 7) == 333'333'333'341);
  CHECK(ps(9'223'372, 1, 0) == 9'223'372'000'000'000'000);
  CHECK(ps(9'223'373, 1, 0) == kMost);
  CHECK(ps(Int128{1} << 126, 1, 0) == kMost);
  CHECK(ps(1, 1, kMost - 1) == kMost);
  CHECK(ps(1, 1, kMost - 1'000'000'000'001) == kMost - 1);
  // 2^86 bytes: a little more than 300,000,000,000 ps. Beyond, the quotient is rounded down first.
  Int128 whole = Int128{1} << 86;
  CHECK(ps(whole, (Int128{0xd55555} << 64) + 0x5555555555555555, 0) == 300'000'000'001);
  CHECK(ps(whole + 2, (Int128{0xd55555} << 64) + 0x554f39955dd03b87, 0) == 300'000'000'002);
  CHECK(ps((Int128{5'957'706} << 64) + 5'462'467'537'464'928'321,
           (Int128{10'655'238} << 64) + Int128{12'687'884'456'468'716'759u}, 0) == 559'134'006'350);
  // Four fifths of a second, at an odd rate.
  Int128 power = 1;
  for (int i = 0; i < 37; ++i) power *= 5;
  CHECK(ps(4 * power, 5 * power, 0) == 800'000'000'000);
}

TEST_CASE("holders in jobs of more than 128 ranks a node") {
  auto holder_ps = [](const char* machine, const char* axes, const char* length,
                      const char* to = "R,S0") {
    MeshRef mesh = std::make_shared<const Mesh>(parse_mesh(axes));
    Request request(parse_layout(length, "u8", mesh, "S0,R"), parse_layout(length, "u8", mesh, to));
    return bound_of(request, sim::find_topology(machine)).holder_ps;
  };
  // Every rank holds half of all, as 49 or 99 others do; of each part one needer lacks it.
  CHECK(holder_ps("nvswitch:100", "2x50", "10000000") ==
        700'000 + transfer_ps(10'000'000, Int128{100} * 450'000'000'000));
  CHECK(holder_ps("nvswitch:200", "2x100", "20000000") ==
        700'000 + transfer_ps(20'000'000, Int128{200} * 450'000'000'000));
  // Who needs a part is who holds it.
  CHECK(holder_ps("nvswitch:200", "2x100", "20000000", "S0,R") == 0);
}

// 130 ranks of a node hold what the other 10 need, and have no need of the other node.
TEST_CASE("ranks that lack nothing keep their way in out of a large node's count") {
  Topology topology = build_topology(
      parse_topology("reshard-topology 1\nname large\ndevices 140\nnodes 2\n"
                     "port nvlink 450GB/s in 1GB/s\nport nic 50GB/s\n"
                     "route within via nvlink.out nvlink.in latency 1us transport nvlink\n"
                     "route between via nic.out nic.in latency 1us transport network\n",
                     "large.topo"),
      {});
  MeshRef holders = std::make_shared<const Mesh>(parse_mesh("130", "10-139")),
          needers = std::make_shared<const Mesh>(parse_mesh("150", "0-9,140-279"));
  // A row for each of the ten, none for the other node's ranks.
  auto holder_ps = [&](const char* shape) {
    return bound_of(Request(parse_layout(shape, "u8", holders, "R"),
                            parse_layout(shape, "u8", needers, "S0")),
                    topology)
        .holder_ps;
  };
  // Into 140 ranks by NVLink and into ten by their NICs.
  Int128 rate = Int128{140 + 10 * 50} * 1'000'000'000;
  CHECK(holder_ps("10,64000000") == 1'000'000 + transfer_ps(640'000'000, rate));
  CHECK(holder_ps("10") == 1'000'000 + transfer_ps(10, rate));
}

}  // namespace reshard
