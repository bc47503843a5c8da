// SPDX-License-Identifier: BSD-3-Clause
// Topologies built from code, without a file: what the constructor accepts and refuses.
#include <catch2/catch.hpp>

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

std::string error_of(const NodeTemplate& node, std::vector<SharedResource> fabric = {},
                     std::int32_t nodes = 1) {
  try {
    Topology("t", node, std::move(fabric), nodes);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
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
  CHECK(error_of(node) == "no error");
  CHECK(error_of(node, {}, 2) ==
        "topology t: expected a route between nodes for 2 nodes, found none");
  node.rule_between = 0;
  CHECK(error_of(node, {}, 2) == "no error");
}

TEST_CASE("contradictions in a template are refused") {
  auto changed = [](auto change) {
    NodeTemplate node = star(4);
    change(node);
    return error_of(node);
  };
  CHECK(changed([](NodeTemplate&) {}) == "no error");
  CHECK(error_of(star(0)) == "topology t: expected at least one device per node, found 0");
  CHECK(error_of(star(4), {}, 0) == "topology t: expected at least one node, found 0");
  CHECK(error_of(star(1 << 20), {}, 2) ==
        "topology t: expected at most 2^20 devices, found 2097152");
  CHECK(error_of(star(4), {{"spine", 0}}) ==
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
  // A class of one device has no pair with itself, but one with every other class.
  CHECK(changed([](NodeTemplate& n) {
          n.class_of = {0, 0, 0, 1};
          n.rule_within = {0, 0, 0, -1};
        }) == "no error");
  CHECK(
      changed([](NodeTemplate& n) {
        n.class_of = {0, 0, 0, 1};
        n.rule_within = {0, -1, 0, -1};
      }) ==
      "topology t: expected a route for every pair of devices of a node, found a pair without one");
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
}

}  // namespace
}  // namespace reshard
