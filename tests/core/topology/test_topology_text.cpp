// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <tuple>

#include "core/topology/gpu_figures.h"
#include "core/topology/machine_lines.h"
#include "tests/core/topology/topology_cases.h"
#include "tests/support/prng.h"

namespace reshard {
namespace {

using namespace test;

std::string_view text_of_class(std::string_view word) {
  std::optional<PathClass> found = find_path_class(word);
  return found ? text(*found) : "none";
}

std::vector<std::string> names_on(const Topology& topology, std::int32_t from, std::int32_t to) {
  std::vector<std::string> out;
  for (ResourceId id : topology.route(static_cast<Rank>(from), static_cast<Rank>(to)).resources)
    out.push_back(topology.resource_name(id));
  return out;
}

TEST_CASE("the documented example means what the page says") {
  Topology topology = build_topology(parse_topology(readme_example(), "README.md"), 3);
  CHECK(topology.name() == "workstation:3");
  CHECK(topology.devices() == 12);
  // Per node 2 shared, then 4 devices of 2 ports with 2 directions; 1 fabric.
  CHECK(topology.resource_count() == 3 * (2 + 4 * 2 * 2) + 1);
  CHECK(names_on(topology, 4, 5) ==
        std::vector<std::string>{"node1.gpu0.nvlink.out", "node1.gpu1.nvlink.in"});
  CHECK(names_on(topology, 7, 4) ==
        std::vector<std::string>{"node1.gpu3.pcie.out", "node1.staging", "node1.gpu0.pcie.in"});
  CHECK(names_on(topology, 3, 8) == std::vector<std::string>{"node0.nics", "spine", "node2.nics"});
  Route staged = topology.route(static_cast<Rank>(0), static_cast<Rank>(2));
  CHECK(staged.latency_ps == 25'000'000);
  CHECK(staged.cap_bytes_per_s == 6'900'000'000);
  CHECK(staged.transport == Transport::Host);
  CHECK(topology.resource_bytes_per_s(staged.resources[0]) == 24'000'000'000);
  CHECK(topology.resource_bytes_per_s(staged.resources[2]) == 22'000'000'000);
  std::vector<std::string> groups;
  for (const NamedGroup& group : topology.groups()) groups.push_back(group.name);
  CHECK(groups == std::vector<std::string>{"node0", "node1", "node2", "node0.socket0",
                                           "node0.socket1", "node1.socket0", "node1.socket1",
                                           "node2.socket0", "node2.socket1"});
}

TEST_CASE("resources are numbered node by node and each number names one resource") {
  Topology topology = build_topology(parse_topology(readme_example(), "README.md"), 2);
  std::vector<std::string> names;
  for (std::int32_t id = 0; id < topology.resource_count(); ++id)
    names.push_back(topology.resource_name(static_cast<ResourceId>(id)));
  CHECK(names.front() == "node0.staging");
  CHECK(names[1] == "node0.nics");
  CHECK(names[2] == "node0.gpu0.nvlink.out");
  CHECK(names[3] == "node0.gpu0.nvlink.in");
  CHECK(names[4] == "node0.gpu0.pcie.out");
  CHECK(names[18] == "node1.staging");
  CHECK(names.back() == "spine");
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  CHECK_THROWS_AS(topology.resource_name(static_cast<ResourceId>(topology.resource_count())),
                  CheckFailure);
  CHECK_THROWS_AS(topology.route(static_cast<Rank>(1), static_cast<Rank>(1)), CheckFailure);
  CHECK_THROWS_AS(topology.route(static_cast<Rank>(1), static_cast<Rank>(8)), CheckFailure);
}

TEST_CASE("the first route that matches counts, and directions may differ") {
  std::string text =
      kHead +
      "group x 0-1\ngroup y 2-3\nroute pairs 0-1 1-2 via host latency 1us transport host\n" +
      "route x to y via spine latency 2us transport pcie\nroute y via a.out latency 3us transport "
      "pcie\nroute within via a.in latency 4us transport pcie\n";
  Topology topology = build_topology(parse_topology(text, "m.topo"), std::nullopt);
  auto latency_us = [&](std::int32_t from, std::int32_t to) {
    return topology.rule(static_cast<Rank>(from), static_cast<Rank>(to)).latency_ps / 1'000'000;
  };
  std::vector<std::vector<std::int64_t>> expected{
      {0, 1, 2, 2}, {1, 0, 1, 2}, {4, 1, 0, 3}, {4, 4, 3, 0}};
  for (std::int32_t from = 0; from < 4; ++from)
    for (std::int32_t to = 0; to < 4; ++to) {
      CAPTURE(from, to);
      if (from != to)
        CHECK(latency_us(from, to) ==
              expected[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]);
    }
}

// Any pair of devices against a search through the lines, on random route lists.
TEST_CASE("routes by classes of devices are the routes that the lines say") {
  std::int64_t pairs_compared = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    test::Prng prng(seed);
    TopologyDescription description;
    description.name = "m";
    description.devices = static_cast<std::int32_t>(prng.between(2, 9));
    description.ports.push_back({"a", 5, 5});
    for (std::int64_t g = 0; g < 3; ++g) {
      DeviceGroup group{fmt::format("g{}", g), {}};
      for (std::int32_t d = 0; d < description.devices; ++d)
        if (prng.one_in(2)) group.devices.push_back(d);
      if (group.devices.empty()) group.devices.push_back(0);
      description.groups.push_back(group);
    }
    for (std::int64_t r = prng.between(0, 5); r >= 0; --r) {
      RouteLine line;
      line.rule.hops = {{Hop::Kind::SourceOut, 0}};
      line.where = r == 0 ? RouteLine::Where::Within
                          : prng.pick(std::vector{RouteLine::Where::Pairs, RouteLine::Where::Groups,
                                                  RouteLine::Where::FromTo});
      if (line.where == RouteLine::Where::Pairs)
        for (std::int64_t p = prng.between(1, 3); p > 0; --p) {
          auto a = static_cast<std::int32_t>(prng.below(description.devices)),
               b = static_cast<std::int32_t>(prng.below(description.devices));
          if (a != b) line.pairs.push_back({a, b});
        }
      if (line.where == RouteLine::Where::Groups || line.where == RouteLine::Where::FromTo) {
        line.a = static_cast<std::int32_t>(prng.below(3));
        line.b = static_cast<std::int32_t>(prng.below(3));
      }
      line.rule.latency_ps = static_cast<std::int64_t>(description.routes.size());
      description.routes.push_back(line);
    }
    auto in = [&](std::int32_t group, std::int32_t device) {
      const std::vector<std::int32_t>& devices =
          description.groups[static_cast<std::size_t>(group)].devices;
      return std::count(devices.begin(), devices.end(), device) > 0;
    };
    auto matches = [&](const RouteLine& line, std::int32_t from, std::int32_t to) {
      switch (line.where) {
        case RouteLine::Where::Within:
          return true;
        case RouteLine::Where::Between:
          return false;
        case RouteLine::Where::FromTo:
          return in(line.a, from) && in(line.b, to);
        case RouteLine::Where::Groups:
          return (in(line.a, from) && in(line.b, to)) || (in(line.b, from) && in(line.a, to));
        case RouteLine::Where::Pairs:
          break;
      }
      return std::count(line.pairs.begin(), line.pairs.end(), std::pair{from, to}) +
                 std::count(line.pairs.begin(), line.pairs.end(), std::pair{to, from}) >
             0;
    };
    Topology topology = build_topology(description, std::nullopt);
    CAPTURE(seed, to_text(description));
    for (std::int32_t from = 0; from < description.devices; ++from)
      for (std::int32_t to = 0; to < description.devices; ++to) {
        if (from == to) continue;
        std::int64_t line = 0;
        while (!matches(description.routes[static_cast<std::size_t>(line)], from, to)) ++line;
        REQUIRE(topology.rule(static_cast<Rank>(from), static_cast<Rank>(to)).latency_ps == line);
        ++pairs_compared;
      }
    accepted += error_of(to_text(description)) == "no error";
  }
  CHECK(pairs_compared > 8000);
  CHECK(accepted > 50);  // the others have a line that no pair takes
}

TEST_CASE("text round trip") {
  for (const std::string& text :
       {readme_example(),
        kHead + "group x 0 2-3\nroute x via host latency 1500ns cap 7B/s transport host\n" +
            kWithin + "nodes 1\n",
        std::string(
            "reshard-topology 1\nname n\ndevices 3\ncount devices\nport a 1001B/s in 1.5GB/s\n") +
            kWithin,
        std::string("reshard-topology 1\nname one\ndevices 1\n")}) {
    TopologyDescription description = parse_topology(text, "m.topo");
    std::string written = to_text(description);
    TopologyDescription again = parse_topology(written, "again.topo");
    CHECK(to_text(again) == written);
    CHECK(build_topology(again, std::nullopt).fingerprint() ==
          build_topology(description, std::nullopt).fingerprint());
  }
  // What is so anyway is not written.
  std::string one = "reshard-topology 1\nname one\ndevices 1\n";
  CHECK(to_text(parse_topology(one + "nodes 1\n", "m.topo")) == one);
}

TEST_CASE("a text in the words of the writer is written as it stands") {
  std::string nodes =
      "reshard-topology 1\nname m\ndevices 5\nnodes 2\ncount nodes\nport a 450GB/s in 0.001GB/s\n"
      "port b 999999B/s\nshared host 1.5GB/s\nfabric spine 6.887GB/s\ngroup x 0-1 3\ngroup y "
      "4\ngroup z 2-4\n"
      "route pairs 0-4 3-2 via a.out b.in latency 0ps transport nvlink\n"
      "route x via host latency 1us cap 20GB/s transport host\n"
      "route x to y via a.out latency 999ps transport pcie\n"
      "route x y via a.out host b.in latency 1.5us transport pcie\n"
      "route within via spine latency 1us transport pcie\n"
      "route between via source.host spine destination.host latency 7us transport network\n";
  CHECK(to_text(parse_topology(nodes, "m.topo")) == nodes);
  std::string devices =
      "reshard-topology 1\nname m\ndevices 2\ncount devices\nport a 1GB/s\nroute within via a.out "
      "latency 1us transport nvlink\n";
  CHECK(to_text(parse_topology(devices, "m.topo")) == devices);
}

TEST_CASE("a text may say what the machine is beside its links") {
  std::string text =
      "reshard-topology 1\nname m\ndevices 2\ngpu sm90\ncpu amd\ntransport nccl 2.28\nreduces "
      "nvlink\n"
      "reduces network\nfigure nccl.launch 4.7us\nfigure nccl.hop.nvlink 0.786us\n"
      "figure nccl.hop.pcie 0.58us\nfigure nccl.hop.host 1.42us\n"
      "figure nccl.simple.launch 0.989\nfigure nccl.simple.hop 1\nfigure nccl.ring 360GB/s\n"
      "figure nccl.efficiency 0.972\nfigure nccl.nvls 0.815001\nfigure nccl.cta 22.9GB/s\n"
      "port a 1GB/s\nroute pairs 0-1 via a.out latency 1us transport pcie class PXB\n";
  TopologyDescription description = parse_topology(text, "m.topo");
  CHECK(to_text(description) == text);
  const Machine& machine = description.machine;
  CHECK(machine.compute_capability == 90);
  CHECK(machine.cpu == Cpu::Amd);
  CHECK(machine.transport == TransportKind::Nccl);
  CHECK(machine.nccl_version == "2.28");
  CHECK((machine.nvls && machine.sharp));
  CHECK(machine.figure(Figure::Launch) == 4'700'000);
  CHECK(machine.figure(Figure::HopNvlink) == 786'000);
  CHECK(machine.figure(Figure::HopPcie) == 580'000);
  CHECK(machine.figure(Figure::HopHost) == 1'420'000);
  CHECK(machine.figure(Figure::SimpleLaunch) == 989'000);
  CHECK(machine.figure(Figure::SimpleHop) == 1'000'000);
  CHECK(machine.figure(Figure::RingRate) == 360'000'000'000);
  CHECK(machine.figure(Figure::Efficiency) == 972'000);
  CHECK(machine.figure(Figure::NvlsEfficiency) == 815'001);
  CHECK(machine.figure(Figure::CtaRate) == 22'900'000'000);
  Topology topology = build_topology(description, std::nullopt);
  CHECK(topology.machine() == machine);
  CHECK(topology.rule(Rank{0}, Rank{1}).path_class() == PathClass::PXB);

  // Where nothing is said.
  auto silent = [](const std::string& transport) {
    return build_topology(
        parse_topology("reshard-topology 1\nname m\ndevices 2\nport a 1GB/s\nroute within via "
                       "a.out latency 1us transport " +
                           transport + "\n",
                       "m.topo"),
        std::nullopt);
  };
  CHECK(silent("nvlink").machine() == Machine{});
  CHECK(silent("nvlink").rule(Rank{0}, Rank{1}).path_class() == PathClass::NVL);
  CHECK(silent("pcie").rule(Rank{0}, Rank{1}).path_class() == PathClass::PIX);
  CHECK(silent("host").rule(Rank{0}, Rank{1}).path_class() == PathClass::SYS);
  CHECK(silent("network").rule(Rank{0}, Rank{1}).path_class() == PathClass::NET);
  for (std::string_view word : kPathClasses) CHECK(text_of_class(word) == word);
}

TEST_CASE("a count replaces what the file says it does, up to 2^20 devices in all") {
  auto built = [](const std::string& counts, std::optional<std::int64_t> count) {
    std::string text =
        kHead + counts + kWithin + "route between via a.out latency 0 transport network\n";
    if (counts == "count devices\n") text = kHead + counts + kWithin;
    Topology topology = build_topology(parse_topology(text, "m.topo"), count);
    return fmt::format("{} {}x{}", topology.name(), topology.nodes(), topology.node().devices);
  };
  CHECK(built("count nodes\n", std::nullopt) == "m:1 1x4");
  CHECK(built("count nodes\nnodes 3\n", std::nullopt) == "m:3 3x4");
  CHECK(built("count nodes\n", 1) == "m:1 1x4");
  CHECK(built("count nodes\n", 262144) == "m:262144 262144x4");
  CHECK(built("count devices\n", std::nullopt) == "m:4 1x4");
  CHECK(built("count devices\n", 7) == "m:7 1x7");
  CHECK(built("nodes 2\n", std::nullopt) == "m 2x4");
  for (std::int64_t count : {0, 262145})
    CHECK_THROWS_WITH(built("count nodes\n", count),
                      fmt::format("topology m: expected 1 to 262144 nodes, found {}", count));
  CHECK_THROWS_WITH(built("nodes 2\n", 2),
                    "topology m: expected no count (the machine has a fixed size), found :2");
}

TEST_CASE("the fingerprint tells topologies apart") {
  auto fingerprint = [](const std::string& text) {
    return build_topology(parse_topology(text, "m.topo"), std::nullopt).fingerprint().hex();
  };
  std::string text = kHead + kWithin;
  CHECK(fingerprint(text) == fingerprint("# a comment changes nothing\n" + text));
  std::string with_returns;
  for (char c : text) with_returns += c == '\n' ? "\r\n" : std::string(1, c);
  CHECK(fingerprint(text) == fingerprint(with_returns));
  for (auto [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"name m", "name o"},
                                                        {"devices 4", "devices 5"},
                                                        {"a 5GB/s", "a 6GB/s"},
                                                        {"spine 11", "spine 12"},
                                                        {"1us", "2us"},
                                                        {"a.out a.in", "a.out host a.in"},
                                                        {"transport nvlink", "transport pcie"},
                                                        {"latency 1us", "latency 1us cap 3GB/s"},
                                                        {"port a", "group g 0\nport a"}}) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    CAPTURE(changed);
    CHECK(fingerprint(changed) != fingerprint(text));
  }
}

TEST_CASE("more than 1024 classes get no table") {
  for (std::int32_t devices : {1024, 1025}) {
    TopologyDescription description;
    description.devices = devices;
    description.routes.resize(1);
    description.routes[0].where = RouteLine::Where::Pairs;
    for (std::int32_t d = 1; d < devices; ++d) description.routes[0].pairs.push_back({0, d});
    RouteTable table = make_route_table(description);
    CHECK(table.too_many_classes == (devices > 1024));
    CHECK(table.rule_within.empty() == (devices > 1024));
  }
}

TEST_CASE("nodes of thousands of like devices need no table") {
  std::string text =
      "reshard-topology 1\nname n\ndevices 1048576\ncount devices\nport a 1GB/s\n" + kWithin;
  Topology topology = build_topology(parse_topology(text, "m.topo"), std::nullopt);
  CHECK(topology.node().rule_within.size() == 1);
  CHECK(topology.devices() == 1048576);
  CHECK(topology.resource_name(
            topology.route(static_cast<Rank>(1048575), static_cast<Rank>(0)).resources[0]) ==
        "node0.gpu1048575.a.out");
  CHECK(build_topology(parse_topology(text, "m.topo"), 5).name() == "n:5");
  CHECK_THROWS_WITH(build_topology(parse_topology(text, "m.topo"), 1048577),
                    "topology n: expected 1 to 1048576 devices, found 1048577");
}

// ---- figures, as traces/topologies/README.md lists them

TEST_CASE("figures: the page has every one with its range") {
  std::string page = file_text("traces/topologies/README.md");
  for (const FigureRow& row : figure_rows())
    CHECK_THAT(page, Catch::Contains(fmt::format("| `{}` | {} .. {} | ", row.name,
                                                 figure_text(row.unit, row.least),
                                                 figure_text(row.unit, row.most))));
}

TEST_CASE("figures: the page has what GPUs of a class reach, up to the next class") {
  std::string page = file_text("traces/topologies/README.md");
  int classes = 0;
  GpuFigures before{};
  for (std::int32_t capability = 0; capability < 200; ++capability) {
    Machine machine;
    machine.compute_capability = capability;
    GpuFigures now = *gpu_figures(machine);
    std::string values =
        fmt::format(" | {} |", figure_text(FigureUnit::Rate, now.memory_bytes_per_s));
    for (std::int64_t mega : {now.mega_f64, now.mega_f32, now.mega_f16})
      values += fmt::format(" {} |", figure_text(FigureUnit::Ratio, mega));
    auto all = [](const GpuFigures& f) {
      return std::tuple(f.memory_bytes_per_s, f.mega_f64, f.mega_f32, f.mega_f16);
    };
    if (all(now) == all(before)) continue;
    before = now;
    ++classes;
    if (capability == 0) capability = 60;  // and all below
    CHECK_THAT(page, Catch::Contains(fmt::format("| {}{}\n", capability, values)));
  }
  CHECK(classes == 10);
}

}  // namespace
}  // namespace reshard
