// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "tests/core/topology/topology_cases.h"
#include "tests/support/prng.h"

namespace reshard {
namespace {

using namespace test;

TEST_CASE("every wrong line is refused with its place") {
  struct Wrong {
    std::string text, message;
  };
  std::string group = "group x 0-1\n";
  Wrong wrong = GENERATE_COPY(values<Wrong>({
      {"", "m.topo:1: expected 'reshard-topology 1' as the first line, found the end"},
      {"name m\n", "m.topo:1: expected 'reshard-topology 1' as the first line, found 'name m'"},
      {"reshard-topology 2\n",
       "m.topo:1: expected 'reshard-topology 1' as the first line, found 'reshard-topology 2'"},
      {"reshard-topology 1\n", "m.topo:1: expected a line 'name', found the end"},
      {"reshard-topology 1\nname m\n", "m.topo:2: expected a line 'devices', found the end"},
      {"reshard-topology 1\nname 3m\n",
       "m.topo:2: expected a name (letters, digits, '_', '-', at most 64), found '3m'"},
      {"reshard-topology 1\nname m m\n", "m.topo:2: expected the end of the line, found 'm'"},
      {kHead,
       "m.topo:6: expected a route for every pair of devices, found none from device 0 to device "
       "1"},
      {kHead + "devices 4\n", "m.topo:7: expected one line 'devices', found a second one"},
      {"reshard-topology 1\nname m\ndevices 0\n",
       "m.topo:3: expected devices per node between 1 and 1048576, found '0'"},
      {"reshard-topology 1\nname m\ndevices 1000000000000\n",
       "m.topo:3: expected devices per node between 1 and 1048576, found '1000000000000'"},
      {"reshard-topology 1\nname m\ndevices 99999999999999999999\n",
       "m.topo:3: expected devices per node between 1 and 1048576, found '99999999999999999999'"},
      {"reshard-topology 1\nname m\ndevices four\n",
       "m.topo:3: expected devices per node (an integer), found 'four'"},
      {kHead + "nodes 1048576\n" + kWithin,
       "m.topo:8: expected at most 2^20 devices in all, found 1048576 nodes of 4"},
      {kHead + "port b nan\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found 'nan'"},
      {kHead + "port b -5GB/s\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found '-5GB/s'"},
      {kHead + "shared b 0\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found '0'"},
      {kHead + "fabric b inf\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found 'inf'"},
      {kHead + "port b 1e40\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found '1e40'"},
      {kHead + "port b\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found ''"},
      {kHead + "gpu h100\n", "m.topo:7: expected a class of GPU such as sm90, found 'h100'"},
      {kHead + "gpu sm49\n",
       "m.topo:7: expected a compute capability, times ten between 50 and 999, found '49'"},
      {kHead + "gpu sm90a\n", "m.topo:7: expected the end, found 'a'"},
      {kHead + "gpu sm90\ngpu sm90\n", "m.topo:8: expected one line 'gpu', found a second one"},
      {kHead + "cpu arm\n", "m.topo:7: expected intel, amd or other, found 'arm'"},
      {kHead + "cpu amd\ncpu amd\n", "m.topo:8: expected one line 'cpu', found a second one"},
      {kHead + "transport mpi\n", "m.topo:7: expected " + transport_names() + ", found 'mpi'"},
      {kHead + "transport ideal 2.28\n", "m.topo:7: expected the end of the line, found '2.28'"},
      {kHead + "transport nccl\ntransport ideal\n",
       "m.topo:8: expected one line 'transport', found a second one"},
      {kHead + "reduces pcie\n", "m.topo:7: expected nvlink or network, found 'pcie'"},
      {kHead + "reduces nvlink\nreduces nvlink\n",
       "m.topo:8: expected one line 'reduces nvlink', found a second one"},
      {kHead + "figure nccl.speed 1\n",
       "m.topo:7: expected one of nccl.launch, nccl.hop.nvlink, nccl.hop.pcie, nccl.hop.host, "
       "nccl.simple.launch, nccl.simple.hop, nccl.ring, nccl.efficiency, nccl.nvls, nccl.cta, "
       "nccl.host, nccl.range, copy.launch, copy.staging, copy.efficiency, copy.engines, "
       "copy.shared, comm.init, comm.init.rank, comm.split, comm.connect, comm.memory, "
       "comm.memory.peer, launch.queue, compute.under_nccl, nccl.under_compute, "
       "compute.under_copy, copy.under_compute, gpu.sms, gpu.memory, gpu.tflops.f64, "
       "gpu.tflops.f32, gpu.tflops.f16, "
       "found 'nccl.speed'"},
      {kHead + "figure nccl.launch 0\n",
       "m.topo:7: expected nccl.launch from 0.1us to 1000us, found '0'"},
      {kHead + "figure nccl.launch 1001us\n",
       "m.topo:7: expected nccl.launch from 0.1us to 1000us, found '1001us'"},
      {kHead + "figure nccl.nvls -1\n", "m.topo:7: expected a ratio such as 0.95, found '-1'"},
      {kHead + "figure nccl.nvls 2.000001\n",
       "m.topo:7: expected nccl.nvls from 0.05 to 2, found '2.000001'"},
      {kHead + "figure nccl.ring 1us\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found '1us'"},
      {kHead + "figure nccl.nvls 1\nfigure nccl.nvls 1\n",
       "m.topo:8: expected one line 'figure nccl.nvls', found a second one"},
      {kHead + "route within via a.out latency 1us transport nvlink class\n",
       "m.topo:7: expected a class (NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET), found the "
       "end of the line"},
      {kHead + "route within via a.out latency 1us transport nvlink class nvl\n",
       "m.topo:7: expected a class (NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET), found "
       "'nvl'"},
      {kHead + "route within via a.out latency 1us transport nvlink cap 1GB/s\n",
       "m.topo:7: expected 'class' or the end of the line, found 'cap'"},
      {kHead + "port a 1GB/s\n", "m.topo:7: expected a name not used before, found 'a'"},
      {kHead + "group host 1\n", "m.topo:7: expected a name not used before, found 'host'"},
      {kHead + "port via 1GB/s\n",
       "m.topo:7: expected a name that is not a keyword of the format, found 'via'"},
      {kHead + "port b 1GB/s out 2GB/s\n",
       "m.topo:7: expected 'in RATE' or the end of the line, found 'out'"},
      {kHead + "group x\n", "m.topo:7: expected devices such as 0-3, found the end of the line"},
      {kHead + "group x 0-4\n",
       "m.topo:7: expected a device of the node between 0 and 3, found '4'"},
      {kHead + "group x 1 0\n",
       "m.topo:7: expected devices in ascending order, each once, found '0'"},
      {kHead + "group x 1-0\n",
       "m.topo:7: expected devices in ascending order, each once, found '1-0'"},
      {kHead + "count some\n", "m.topo:7: expected nodes, devices or nothing, found 'some'"},
      {kHead + "count nodes\n" + kWithin,
       "m.topo:8: expected a line 'route between', as there can be several nodes, found the end"},
      {kHead + "nodes 2\n" + kWithin,
       "m.topo:8: expected a line 'route between', as there can be several nodes, found the end"},
      {kHead + group + "count devices\n" + kWithin,
       "m.topo:9: expected one node without groups, as 'count devices' makes all devices alike, "
       "found more"},
      {kHead + "count devices\nroute pairs 0-1 via host latency 0 transport host\n" + kWithin,
       "m.topo:8: expected 'within', as 'count devices' makes all devices alike, found another"},
      {kHead + "count devices\n" + kWithin + "route between via spine latency 0 transport host\n",
       "m.topo:9: expected 'within', as 'count devices' makes all devices alike, found another"},
      {kHead + kWithin + kWithin,
       "m.topo:8: expected a route that some pair of devices takes (the first matching line "
       "counts), found another"},
      {kHead + "route x via a.out latency 0 transport host\n",
       "m.topo:7: expected within, between, pairs or a group, found 'x'"},
      {kHead + group + "route x y via a.out latency 0 transport host\n",
       "m.topo:8: expected 'to', 'via' or a group, found 'y'"},
      {kHead + group + "route x to y via a.out latency 0 transport host\n",
       "m.topo:8: expected a group, found 'y'"},
      {kHead + group + "route x x x via a.out latency 0 transport host\n",
       "m.topo:8: expected 'via', found 'x'"},
      {kHead + "route pairs via a.out latency 0 transport host\n",
       "m.topo:7: expected pairs of devices such as 0-1, found 'via'"},
      {kHead + "route pairs 1-1 via a.out latency 0 transport host\n",
       "m.topo:7: expected two different devices, found '1-1'"},
      {kHead + "route pairs 0-1\n",
       "m.topo:7: expected another pair or 'via', found the end of the line"},
      {kHead + "route within via\n",
       "m.topo:7: expected a hop such as nvlink.out, found the end of the line"},
      {kHead + "route within via a.out\n",
       "m.topo:7: expected another hop or 'latency', found the end of the line"},
      {kHead + "route within via a\n",
       "m.topo:7: expected a hop (PORT.out, PORT.in, a shared or fabric resource declared above), "
       "found 'a'"},
      {kHead + "route within via a.up\n",
       "m.topo:7: expected a hop (PORT.out, PORT.in, a shared or fabric resource declared above), "
       "found 'a.up'"},
      {kHead + "route within via source.host latency\n",
       "m.topo:7: expected a hop (PORT.out, PORT.in, a shared or fabric resource declared above), "
       "found 'source.host'"},
      {kHead + "route between via host latency\n",
       "m.topo:7: expected source.host or destination.host between nodes, found 'host'"},
      {kHead + "route within via a.out a.out latency\n",
       "m.topo:7: expected each resource once in a route, found 'a.out'"},
      {kHead + "route within via a.out latency 8\n",
       "m.topo:7: expected a time such as 8us or 1.5ms, from 0 to 10^6 seconds, found '8'"},
      {kHead + "route within via a.out latency -8us\n",
       "m.topo:7: expected a time such as 8us or 1.5ms, from 0 to 10^6 seconds, found '-8us'"},
      {kHead + "route within via a.out latency 8us\n",
       "m.topo:7: expected 'cap' or 'transport', found the end of the line"},
      {kHead + "route within via a.out latency 8us cap 0 transport pcie\n",
       "m.topo:7: expected a positive rate such as 450GB/s or 6.887e9, up to 2^62 bytes per "
       "second, found '0'"},
      {kHead + "route within via a.out latency 8us cap 1GB/s\n",
       "m.topo:7: expected 'transport', found the end of the line"},
      {kHead + "route within via a.out latency 8us transport pigeon\n",
       "m.topo:7: expected nvlink, pcie, host or network, found 'pigeon'"},
      {kHead + "link a b\n",
       "m.topo:7: expected name, devices, nodes, count, gpu, cpu, transport, reduces, figure, "
       "port, shared, "
       "fabric, group or route, "
       "found 'link'"},
      {"reshard-topology 1\nname m\ngroup x 0\n",
       "m.topo:3: expected the line 'devices' before this one, found 'group x 0'"},
      {kHead + "count nothing\n" + kWithin +
           "route between via a.out latency 0 transport network\nroute between via a.in latency 0 "
           "transport network\n",
       "m.topo:10: expected a route that some pair of devices takes (the first matching line "
       "counts), found another"},
  }));
  CAPTURE(wrong.text);
  CHECK(error_of(wrong.text) == wrong.message);
}

TEST_CASE("of two lines between nodes the first counts, the very first line of all too") {
  const std::string between = "route between via a.out latency 0 transport network\n";
  CHECK(error_of(kHead + "count nothing\n" + between + between + kWithin) ==
        "m.topo:9: expected a route that some pair of devices takes (the first matching line "
        "counts), found another");
  // A node of one device may have lines that it never takes; a line between nodes may come first.
  const std::string one = "reshard-topology 1\nname m\ndevices 1\nnodes 2\nport a 5GB/s\n";
  CHECK(error_of(one + between) == "no error");
  CHECK(error_of(one + between + kWithin + kWithin) == "no error");
  CHECK(error_of(one + kWithin + between + between) ==
        "m.topo:8: expected a route that some pair of devices takes (the first matching line "
        "counts), found another");
  CHECK(error_of(one + "group g 0\n" + between + "route g via a.in latency 0 transport pcie\n") ==
        "m.topo:8: expected a route that some pair of devices takes (the first matching line "
        "counts), found another");
  CHECK(error_of(kHead + "nodes 2\n" + between + kWithin) == "no error");
}

TEST_CASE("what would take absurd work or memory is refused") {
  std::string text = "reshard-topology 1\nname m\ndevices 1048576\nport a 1GB/s\n";
  // 2^20 devices may be in groups once, not twice.
  CHECK(error_of(text + "group x 0-1048575\ngroup y 0-1048575\n") ==
        "m.topo:6: expected at most 2^20 members of groups and pairs in all, found 'group y "
        "0-1048575'");
  // Their last halves may twice, and a pair counts as two.
  CHECK(error_of(text + "group x 524288-1048575\ngroup y 524288-1048575\ngroup z 0\n") ==
        "m.topo:7: expected at most 2^20 members of groups and pairs in all, found 'group z 0'");
  std::string pairs = text + "group x 0-1048573\nroute pairs 0-1 ";
  CHECK(error_of(pairs + "1-2 via") ==
        "m.topo:6: expected at most 2^20 members of groups and pairs in all, found 'route pairs "
        "0-1 1-2 via'");
  CHECK(error_of(pairs + "via") ==
        "m.topo:6: expected a hop such as nvlink.out, found the end of "
        "the line");
  std::string star = "reshard-topology 1\nname m\ndevices 2000\nport a 1GB/s\nroute pairs";
  for (int d = 1; d < 2000; ++d) star += fmt::format(" 0-{}", d);
  CHECK(error_of(star + " via a.out latency 0 transport pcie\n" + kWithin) ==
        "m.topo:6: expected routes that distinguish at most 1024 devices, found more");
  star = "reshard-topology 1\nname m\ndevices 1024\nport a 1GB/s\nroute pairs";
  for (int d = 1; d < 1024; ++d) star += fmt::format(" 0-{}", d);
  CHECK(error_of(star + " via a.out latency 0 transport pcie\n" + kWithin) == "no error");
  std::string ports = "reshard-topology 1\nname m\ndevices 1048576\ncount devices\n";
  for (int p = 0; p < 9; ++p) ports += fmt::format("port a{} 1GB/s\n", p);
  CHECK(error_of(ports + "route within via a0.out latency 0 transport pcie\n") ==
        "topology m:1048576: expected at most 2^24 resources, found 18874368");
  CHECK(error_of("reshard-topology 1\n" + std::string((64 << 20) + 1, 'x')) ==
        "m.topo:2: expected lines of at most 64 MiB, found a longer one");
  CHECK(error_of("reshard-topology 1\n#" + std::string((64 << 20) - 1, 'x')) ==
        "m.topo:2: expected a line 'name', found the end");
  std::string many = kHead;
  for (int r = 0; r < 257; ++r) many += kWithin;
  CHECK(error_of(many).find("m.topo:263: expected at most 256 routes, found 'route within") == 0);
}

TEST_CASE(
    "names are a letter and up to 63 letters, digits, '_' and '-', none a word of the format") {
  auto error_of_name = [](const std::string& name) {
    std::string error = error_of(kHead + "port " + name + " 1GB/s\n" + kWithin);
    return error.substr(0, error.find(" ("));
  };
  for (const std::string& good : {std::string("A"), std::string("Z9_-"), std::string("z0"),
                                  std::string("b-"), std::string(64, 'x')})
    CHECK(error_of_name(good) == "no error");
  for (const std::string& bad :
       {std::string("0a"), std::string("_a"), std::string("-a"), std::string("@"), std::string("["),
        std::string("`"), std::string("{"), std::string("a."), std::string(65, 'x')})
    CHECK(error_of_name(bad) == "m.topo:7: expected a name");
  for (const char* word : {"within", "between", "pairs", "to", "via", "latency", "cap", "transport",
                           "source", "destination", "in", "out"})
    CHECK(error_of_name(word) ==
          fmt::format("m.topo:7: expected a name that is not a keyword of the format, found '{}'",
                      word));
  for (const char* used : {"a", "host", "spine"})
    CHECK(error_of_name(used) ==
          fmt::format("m.topo:7: expected a name not used before, found '{}'", used));
}

TEST_CASE("a node may have so many parts and not one more") {
  struct LimitedLine {
    std::string key, rest, what;
    int limit, there;  // in kHead, so many are
  };
  for (const LimitedLine& part : {LimitedLine{"port", "1GB/s", "ports", 64, 1},
                                  LimitedLine{"shared", "1GB/s", "of these lines", 256, 1},
                                  LimitedLine{"fabric", "1GB/s", "of these lines", 1024, 1},
                                  LimitedLine{"group", "0", "groups", 1024, 0}}) {
    std::string text = kHead;
    for (int i = part.there; i < part.limit; ++i)
      text += fmt::format("{} n{} {}\n", part.key, i, part.rest);
    CHECK(error_of(text + kWithin) == "no error");
    std::string more = fmt::format("{} more {}", part.key, part.rest);
    CHECK(error_of(text + more + "\n") ==
          fmt::format("m.topo:{}: expected at most {} {}, found '{}'", 7 + part.limit - part.there,
                      part.limit, part.what, more));
  }
  std::string hops = "route within via";
  for (int i = 0; i < 16; ++i) hops += fmt::format(" f{}", i);
  std::string fabric = kHead;
  for (int i = 0; i < 17; ++i) fabric += fmt::format("fabric f{} 1GB/s\n", i);
  CHECK(error_of(fabric + hops + " latency 0 transport pcie\n") == "no error");
  CHECK(error_of(fabric + hops + " f16 latency 0 transport pcie\n") ==
        "m.topo:24: expected at most 16 hops, found 'f16'");
  // A pair counts twice among the 2^20 members.
  std::string text =
      "reshard-topology 1\nname m\ndevices 1048576\nport a 1GB/s\ngroup x 0-1048573\n";
  CHECK(error_of(text + "route pairs 0-1 via a.out latency 0 transport pcie\n" + kWithin) ==
        "no error");
  CHECK(error_of(text + "route pairs 0-1 2-3 via a.out latency 0 transport pcie\n") ==
        "m.topo:6: expected at most 2^20 members of groups and pairs in all, found 'route pairs "
        "0-1 2-3 via a.out latency 0 ...'");
}

TEST_CASE("a pair without a route is named by the first devices of its classes") {
  std::string text = kHead + "group x 0\ngroup y 1 3\ngroup z 2\n";
  auto route = [](const char* where) {
    return std::string("route ") + where + " via host latency 0 transport host\n";
  };
  auto missing = [&](const std::string& routes, const char* pair) {
    CHECK(error_of(text + routes).find(std::string("found none from device ") + pair) !=
          std::string::npos);
  };
  std::string all_but_y = route("x y") + route("x z") + route("y z");
  missing(all_but_y, "1 to device 3");
  missing(route("x y") + route("x z") + route("y") + route("y to z"), "2 to device 1");
  missing(route("y") + route("x z") + route("y z"), "0 to device 1");
  CHECK(error_of(text + all_but_y + route("y")) == "no error");
}

TEST_CASE("lines that say what the machine is come once") {
  for (const char* line : {"name m", "nodes 1", "count nothing", "devices 4"}) {
    std::string key(line, std::string_view(line).find(' '));
    bool in_head = key == "name" || key == "devices";
    CHECK(
        error_of(kHead + (in_head ? "" : line + std::string("\n")) + line + "\n") ==
        fmt::format("m.topo:{}: expected one line '{}', found a second one", in_head ? 7 : 8, key));
  }
}

// Cut and changed texts either make a topology or give one InputError with the file's name; nothing
// else, and quickly.
TEST_CASE("changed files never do worse than an input error") {
  std::string text = readme_example();
  std::int64_t refused = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    test::Prng prng(seed);
    std::string changed = text;
    for (std::int64_t edits = prng.between(1, 3); edits > 0; --edits) {
      auto at = static_cast<std::size_t>(prng.below(static_cast<std::int64_t>(changed.size())));
      switch (prng.below(4)) {
        case 0:
          changed.resize(at + 1);
          break;
        case 1:
          changed[at] = static_cast<char>(prng.below(256));
          break;
        case 2:
          changed.erase(at, static_cast<std::size_t>(prng.between(1, 20)));
          break;
        default:
          changed.insert(at, changed.substr(static_cast<std::size_t>(prng.below(
                                                static_cast<std::int64_t>(changed.size()))),
                                            12));
          break;
      }
    }
    CAPTURE(seed, changed);
    std::string error = error_of(changed);
    if (error == "no error") {
      ++accepted;
      TopologyDescription description = parse_topology(changed, "m.topo");
      REQUIRE(to_text(parse_topology(to_text(description), "again.topo")) == to_text(description));
    } else {
      ++refused;
      REQUIRE((error.find("m.topo:") == 0 || error.find("topology ") == 0));
      REQUIRE(error.find("expected") != std::string::npos);
      REQUIRE(error.find("found") != std::string::npos);
      REQUIRE(error.find('\n') == std::string::npos);
    }
  }
  CHECK(refused > 1000);
  CHECK(accepted > 100);
}

}  // namespace
}  // namespace reshard
