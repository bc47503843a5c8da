// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/topology/topology_text.h"
#include "tests/support/prng.h"

namespace reshard {
namespace {

const std::string kHead =
    "reshard-topology 1\nname m\ndevices 4\nport a 5GB/s\nshared host 4GB/s\nfabric spine "
    "11GB/s\n";  // 6 lines
const std::string kWithin = "route within via a.out a.in latency 1us transport nvlink\n";

std::string error_of(const std::string& text) {
  try {
    build_topology(parse_topology(text, "m.topo"), std::nullopt);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> names_on(const Topology& topology, std::int32_t from, std::int32_t to) {
  std::vector<std::string> out;
  for (ResourceId id : topology.route(static_cast<Rank>(from), static_cast<Rank>(to)).resources)
    out.push_back(topology.resource_name(id));
  return out;
}

// The example of traces/topologies/README.md, read from there, so that the page stays true.
std::string readme_example() {
  std::string page = file_text("traces/topologies/README.md");
  std::size_t begin = page.find("reshard-topology 1\n# Two");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("```", begin) - begin);
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
}

TEST_CASE("the fingerprint tells topologies apart") {
  auto fingerprint = [](const std::string& text) {
    return build_topology(parse_topology(text, "m.topo"), std::nullopt).fingerprint().hex();
  };
  std::string text = kHead + kWithin;
  CHECK(fingerprint(text) == fingerprint("# a comment changes nothing\n" + text));
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
      {kHead + "port a 1GB/s\n", "m.topo:7: expected a name not used before, found 'a'"},
      {kHead + "group host 1\n", "m.topo:7: expected a name not used before, found 'host'"},
      {kHead + "port via 1GB/s\n",
       "m.topo:7: expected a name that is no word of the format, found 'via'"},
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
       "m.topo:8: expected a line 'route between' where there may be several nodes, found the end"},
      {kHead + "nodes 2\n" + kWithin,
       "m.topo:8: expected a line 'route between' where there may be several nodes, found the end"},
      {kHead + group + "count devices\n" + kWithin,
       "m.topo:9: expected one node without groups where 'count devices' makes all devices alike, "
       "found more"},
      {kHead + "count devices\nroute pairs 0-1 via host latency 0 transport host\n" + kWithin,
       "m.topo:8: expected 'within' where 'count devices' makes all devices alike, found another"},
      {kHead + kWithin + kWithin,
       "m.topo:8: expected a route that some pair of devices takes (the first line that matches "
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
       "m.topo:7: expected name, devices, nodes, count, port, shared, fabric, group or route, "
       "found 'link'"},
      {"reshard-topology 1\nname m\ngroup x 0\n",
       "m.topo:3: expected the line 'devices' before this one, found 'group x 0'"},
      {kHead + "count nothing\n" + kWithin +
           "route between via a.out latency 0 transport network\nroute between via a.in latency 0 "
           "transport network\n",
       "m.topo:10: expected a route that some pair of devices takes (the first line that matches "
       "counts), found another"},
  }));
  CAPTURE(wrong.text);
  CHECK(error_of(wrong.text) == wrong.message);
}

TEST_CASE("what would take absurd work or memory is refused") {
  std::string text = "reshard-topology 1\nname m\ndevices 1048576\nport a 1GB/s\n";
  // 2^20 devices may be in groups once, not twice.
  CHECK(error_of(text + "group x 0-1048575\ngroup y 0-1048575\n") ==
        "m.topo:6: expected at most 2^20 members of groups and pairs in all, found 'group y "
        "0-1048575'");
  std::string star = "reshard-topology 1\nname m\ndevices 2000\nport a 1GB/s\nroute pairs";
  for (int d = 1; d < 2000; ++d) star += fmt::format(" 0-{}", d);
  CHECK(error_of(star + " via a.out latency 0 transport pcie\n" + kWithin) ==
        "m.topo:6: expected routes that tell at most 1024 devices apart, found more");
  std::string ports = "reshard-topology 1\nname m\ndevices 1048576\ncount devices\n";
  for (int p = 0; p < 9; ++p) ports += fmt::format("port a{} 1GB/s\n", p);
  CHECK(error_of(ports + "route within via a0.out latency 0 transport pcie\n") ==
        "topology m:1048576: expected at most 2^24 resources, found 18874368");
  CHECK(error_of("reshard-topology 1\n" + std::string((64 << 20) + 1, 'x')) ==
        "m.topo:2: expected lines of at most 64 MiB, found a longer one");
  std::string many = kHead;
  for (int r = 0; r < 257; ++r) many += kWithin;
  CHECK(error_of(many).find("m.topo:263: expected at most 256 routes, found 'route within") == 0);
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
