// SPDX-License-Identifier: BSD-3-Clause
// Topologies built in code, without a file: what the constructor accepts and refuses.
#include <catch2/catch.hpp>

#include <set>

#include "core/base/errors.h"
#include "core/topology/topology.h"

namespace reshard {
namespace {

NodeTemplate star(std::int32_t devices) {
  NodeTemplate node;
  node.devices = devices;
  node.ports = {{"port", 25'000'000'000, 20'000'000'000}};
  node.shared = {{"host", 4}};
  node.rules = {{{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}},
                 3,
                 std::nullopt,
                 Transport::NVLink}};
  node.rule_within = {0};
  return node;
}

std::string refusal_of(const NodeTemplate& node, std::vector<SharedResource> fabric = {},
                       std::int32_t nodes = 1) {
  try {
    Topology("t", node, std::move(fabric), nodes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string ranks_of(const std::vector<Rank>& ranks) {
  std::string out;
  for (Rank rank : ranks) out += (out.empty() ? "" : ",") + std::to_string(to_int(rank));
  return out;
}

TEST_CASE("a star of like devices") {
  Topology topology("star", star(128), {}, 1);
  CHECK(topology.devices() == 128);
  CHECK(topology.classes() == 1);
  Route route = topology.route(static_cast<Rank>(3), static_cast<Rank>(127));
  REQUIRE(route.resources.size() == 2);
  CHECK(topology.resource_name(route.resources[0]) == "node0.gpu3.port.out");
  CHECK(topology.resource_name(route.resources[1]) == "node0.gpu127.port.in");
  CHECK(topology.resource_bytes_per_s(route.resources[0]) == 25'000'000'000);
  CHECK(topology.resource_bytes_per_s(route.resources[1]) == 20'000'000'000);
  CHECK(route.latency_ps == 3);
  CHECK_FALSE(route.cap_bytes_per_s.has_value());
  CHECK(topology.groups().empty());
}

TEST_CASE("a single device needs no route") {
  NodeTemplate node = star(1);
  node.rule_within = {};
  CHECK(refusal_of(node) == "no error");
  CHECK(refusal_of(node, {}, 2) ==
        "topology t: expected a route between nodes for 2 nodes, found none");
  node.rule_between = 0;
  CHECK(refusal_of(node, {}, 2) == "no error");
}

TEST_CASE("contradictions in a template are refused") {
  auto changed = [](auto change) {
    NodeTemplate node = star(4);
    change(node);
    return refusal_of(node);
  };
  CHECK(changed([](NodeTemplate&) {}) == "no error");
  CHECK(refusal_of(star(0)) == "topology t: expected at least one device per node, found 0");
  CHECK(refusal_of(star(4), {}, 0) == "topology t: expected at least one node, found 0");
  CHECK(refusal_of(star(1 << 20), {}, 2) ==
        "topology t: expected at most 2^20 devices, found 2097152");
  CHECK(refusal_of(star(4), {{"spine", 0}}) ==
        "topology t: spine: expected a capacity of 1 to 2^62 bytes per second, found 0");
  CHECK(changed([](NodeTemplate& n) { n.ports[0].in_bytes_per_s = -1; }) ==
        "topology t: port: expected a capacity of 1 to 2^62 bytes per second, found -1");
  CHECK(changed([](NodeTemplate& n) { n.rules[0].hops.clear(); }) ==
        "topology t: expected a route to cross at least one resource, found none");
  CHECK(changed([](NodeTemplate& n) { n.rules[0].latency_ps = -1; }) ==
        "topology t: expected a latency of at least 0, found -1 ps");
  CHECK(changed([](NodeTemplate& n) { n.rules[0].cap_bytes_per_s = 0; }) ==
        "topology t: expected a cap of at least 1 byte per second, found 0");
  CHECK(changed([](NodeTemplate& n) { n.rules[0].hops[1].index = 1; }) ==
        "topology t: route: expected a resource index below 1, found 1");
  CHECK(changed([](NodeTemplate& n) {
          n.rules[0].hops = {{Hop::Kind::Fabric, 0}};
        }) == "topology t: route: expected a resource index below 0, found 0");
  // Inside a node both names are one resource.
  CHECK(
      changed([](NodeTemplate& n) {
        n.rules[0].hops = {{Hop::Kind::SourceNodeShared, 0}, {Hop::Kind::DestinationNodeShared, 0}};
      }) == "topology t: expected a route to cross each resource once, found one twice");
  CHECK(changed([](NodeTemplate& n) { n.rule_within = {}; }) ==
        "topology t: expected 1 rules within a node, one per pair of classes, found 0");
  CHECK(
      changed([](NodeTemplate& n) { n.rule_within = {-1}; }) ==
      "topology t: expected a route for every pair of devices of a node, found a pair without one");
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 2, 1};
        }) == "topology t: expected 9 rules within a node, one per pair of classes, found 1");
  // A class of one device has no pair with itself, but one with every other class.
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 0, 1};
          n.rule_within = {0, 0, 0, -1};
        }) == "no error");
  for (const std::vector<std::int32_t>& rules :
       {std::vector{0, -1, 0, -1}, {0, 0, -1, -1}, {-1, 0, 0, 0}})
    CHECK(changed([&](NodeTemplate& n) {
            n.class_of = {0, 0, 0, 1};
            n.rule_within = rules;
          }) ==
          "topology t: expected a route for every pair of devices of a node, found a pair without "
          "one");
  CHECK(changed([](NodeTemplate& n) { n.rule_within = {1}; }) ==
        "topology t: expected a rule below 1, found 1");
  CHECK(changed([](NodeTemplate& n) { n.rule_between = 1; }) ==
        "topology t: expected a rule below 1 between nodes, found 1");
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 1};
        }) == "topology t: expected a class for each of 4 devices, found 3");
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 1, 1024};
        }) == "topology t: expected device classes below 1024, found 1024");
  CHECK(changed([](NodeTemplate& n) {
          n.groups = {{"g", {}}};
        }) == "topology t: group g: expected at least one device, found none");
  CHECK(changed([](NodeTemplate& n) {
          n.groups = {{"g", {1, 1}}};
        }) == "topology t: group g: expected devices below 4 in ascending order, found 1");
  CHECK(changed([](NodeTemplate& n) {
          n.groups = {{"g", {4}}};
        }) == "topology t: group g: expected devices below 4 in ascending order, found 4");
  CHECK(changed([](NodeTemplate& n) {
          n.groups = {{"g", {-1}}};
        }) == "topology t: group g: expected devices below 4 in ascending order, found -1");
  CHECK(changed([](NodeTemplate& n) { n.rules[0].hops[0].index = -1; }) ==
        "topology t: route: expected a resource index below 1, found -1");
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 1, -1};
        }) == "topology t: expected device classes below 1024, found -1");
  CHECK(changed([](NodeTemplate& n) { n.shared[0].bytes_per_s = kMaxBytes + 1; }) ==
        "topology t: host: expected a capacity of 1 to 2^62 bytes per second, found "
        "4611686018427387905");
  CHECK(changed([](NodeTemplate& n) { n.ports[0].out_bytes_per_s = 0; }) ==
        "topology t: port: expected a capacity of 1 to 2^62 bytes per second, found 0");
}

TEST_CASE("what is just within a template's limits is accepted") {
  NodeTemplate node = star(4);
  node.ports = {{"port", 1, kMaxBytes}};
  node.rules[0].latency_ps = 0;
  node.rules[0].cap_bytes_per_s = 1;
  // Between nodes the two names are two resources, in a rule that pairs within do not take.
  node.rules.push_back({{{Hop::Kind::SourceNodeShared, 0}, {Hop::Kind::DestinationNodeShared, 0}},
                        0,
                        std::nullopt,
                        Transport::Network});
  node.rule_between = 1;
  CHECK(refusal_of(node, {{"spine", 1}}, 2) == "no error");
  // Of class 1 there is no device.
  node.class_of = {0, 0, 2, 2};
  node.rule_within = {0, -1, 0, -1, -1, -1, 0, -1, 0};
  CHECK(refusal_of(node) == "no error");
  CHECK(Topology("t", node, {}, 1).classes() == 3);
  // 2^20 nodes of 14 shared resources and one device of one port; one on top.
  node = star(1);
  node.shared = std::vector<SharedResource>(14, {"host", 1});
  node.rule_between = 0;
  CHECK(refusal_of(node, {}, 1 << 20) == "no error");
  CHECK(refusal_of(node, {{"spine", 1}}, 1 << 20) ==
        "topology t: expected at most 2^24 resources, found 16777217");
}

TEST_CASE("every field of a topology is in its fingerprint") {
  std::vector<NodeTemplate> nodes(26, star(4));
  for (NodeTemplate& node : nodes) {
    node.rules.push_back(node.rules[0]);
    node.rule_between = 0;
  }
  nodes[1].devices = 3;
  nodes[2].ports[0].name = "p";
  nodes[3].ports[0].out_bytes_per_s = 1;
  nodes[4].ports[0].in_bytes_per_s = 1;
  nodes[5].shared[0].name = "h";
  nodes[6].shared[0].bytes_per_s = 1;
  nodes[7].groups = {{"g", {0}}};
  nodes[8].groups = {{"f", {0}}};
  nodes[9].groups = {{"g", {1}}};
  nodes[10].rules[0].hops[1].kind = Hop::Kind::Fabric;
  nodes[11].rules[0].latency_ps = 4;
  nodes[12].rules[0].cap_bytes_per_s = 1;
  nodes[13].rules[0].transport = Transport::PCIe;
  nodes[14].class_of = {0, 0, 0, 0};
  nodes[15].rule_within = {1};
  nodes[16].rule_between = 1;
  nodes[17].machine.compute_capability = 80;
  nodes[18].machine.cpu = Cpu::Intel;
  nodes[19].machine.nvls = true;
  nodes[20].machine.sharp = true;
  nodes[21].machine.set(Figure::Launch, 1);
  nodes[22].rules[0].stated_class = PathClass::NVL;
  for (std::size_t i : {23U, 24U, 25U}) nodes[i].machine.transport = TransportKind::Nccl;
  nodes[24].machine.transport = TransportKind::Ideal;
  nodes[25].machine.nccl_version = "2.28";
  std::set<std::string> seen;
  for (const NodeTemplate& node : nodes)
    seen.insert(Topology("t", node, {{"s", 1}}, 2).fingerprint().hex());
  seen.insert(Topology("u", nodes[0], {{"s", 1}}, 2).fingerprint().hex());
  seen.insert(Topology("t", nodes[0], {{"s", 2}}, 2).fingerprint().hex());
  seen.insert(Topology("t", nodes[0], {{"s", 1}}, 3).fingerprint().hex());
  CHECK(seen.size() == nodes.size() + 3);
}

TEST_CASE("groups hold their devices in global numbers, nodes first where there are several") {
  NodeTemplate node = star(3);
  node.groups = {{"a", {0, 2}}, {"b", {1}}};
  node.rule_between = 0;
  auto groups = [&](std::int32_t nodes) {
    std::string out;
    for (const NamedGroup& group : Topology("t", node, {{"spine", 7}}, nodes).groups())
      out += group.name + ":" + ranks_of(group.devices) + " ";
    return out;
  };
  CHECK(groups(1) == "node0.a:0,2 node0.b:1 ");
  CHECK(groups(2) == "node0:0,1,2 node1:3,4,5 node0.a:0,2 node0.b:1 node1.a:3,5 node1.b:4 ");
}

TEST_CASE("a hop names a resource relative to its ends") {
  NodeTemplate node = star(3);
  node.ports.push_back({"nic", 1, 1});
  node.shared.push_back({"disk", 1});
  node.rule_between = 0;
  Topology topology("t", node, {{"spine", 7}, {"core", 8}}, 2);
  std::vector<std::string> names;
  for (auto kind : {Hop::Kind::SourceOut, Hop::Kind::DestinationIn, Hop::Kind::SourceNodeShared,
                    Hop::Kind::DestinationNodeShared, Hop::Kind::Fabric})
    names.push_back(topology.resource_name(topology.resource({kind, 1}, Rank{2}, Rank{4})));
  CHECK(names == std::vector<std::string>{"node0.gpu2.nic.out", "node1.gpu1.nic.in", "node0.disk",
                                          "node1.disk", "core"});
}

TEST_CASE("resources have the capacities of their kinds, routes their ends") {
  NodeTemplate node = star(3);
  node.rule_between = 0;
  Topology topology("t", node, {{"spine", 7}}, 2);
  // Per node one shared resource and three devices of a port.
  CHECK(topology.resource_count() == 15);
  CHECK(topology.resource_bytes_per_s(ResourceId{7}) == 4);
  CHECK(topology.resource_bytes_per_s(ResourceId{14}) == 7);
  CHECK_THROWS_AS(topology.resource_bytes_per_s(ResourceId{-1}), CheckFailure);
  for (auto [from, to] : {std::pair{-1, 0}, {0, -1}, {6, 0}, {0, 6}})
    CHECK_THROWS_AS(topology.rule(Rank{from}, Rank{to}), CheckFailure);
  CHECK_THROWS_WITH(topology.rule(Rank{5}, Rank{6}),
                    Catch::Contains("no route from device 5 to device 6 of t"));
  CHECK_NOTHROW(topology.rule(Rank{0}, Rank{5}));
  CHECK_NOTHROW(topology.rule(Rank{5}, Rank{0}));
  std::string words;
  for (Transport t : {Transport::NVLink, Transport::PCIe, Transport::Host, Transport::Network})
    words += std::string(text(t)) + " ";
  CHECK(words == "nvlink pcie host network ");
}

}  // namespace
}  // namespace reshard
