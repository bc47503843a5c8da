// SPDX-License-Identifier: BSD-3-Clause
// Random machines, wired as nobody would wire them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/topology/topology.h"
#include "tests/support/prng.h"

namespace reshard::test {

// Routes over any ports and shared resources in any order.
inline Topology random_machine(std::uint64_t seed) {
  Prng draw(seed);
  NodeTemplate node;
  node.devices = static_cast<std::int32_t>(draw.between(1, 7));
  auto nodes = static_cast<std::int32_t>(draw.between(1, 4));
  auto rate = [&] { return draw.between(1, 90) * 1'000'000'000; };
  std::int64_t ports = draw.between(1, 3), shared = draw.between(0, 6),
               fabrics = draw.between(0, 2);
  for (std::int64_t i = 0; i < ports; ++i)
    node.ports.push_back({"p" + std::to_string(i), rate(), rate()});
  for (std::int64_t i = 0; i < shared; ++i)
    node.shared.push_back({"s" + std::to_string(i), rate()});
  std::vector<SharedResource> fabric;
  for (std::int64_t i = 0; i < fabrics; ++i) fabric.push_back({"f" + std::to_string(i), rate()});
  auto add_rule = [&](bool between) {
    RouteRule rule;
    rule.transport = static_cast<Transport>(draw.below(4));
    auto add_some = [&](Hop::Kind kind, std::int64_t count, std::int64_t most) {
      std::vector<std::int32_t> order;
      for (std::int32_t i = 0; i < count; ++i) order.push_back(i);
      draw.shuffle(order);
      order.resize(to_index(std::min(count, draw.between(0, most))));
      for (std::int32_t i : order) rule.hops.push_back({kind, i});
    };
    add_some(Hop::Kind::SourceOut, ports, 1);
    add_some(Hop::Kind::SourceNodeShared, shared, 3);
    if (between) add_some(Hop::Kind::Fabric, fabrics, 2);
    if (between) add_some(Hop::Kind::DestinationNodeShared, shared, 2);
    add_some(Hop::Kind::DestinationIn, ports, 1);
    if (rule.hops.empty()) rule.hops.push_back({Hop::Kind::SourceOut, 0});
    node.rules.push_back(rule);
    return static_cast<std::int32_t>(node.rules.size()) - 1;
  };
  std::int64_t classes = draw.between(1, node.devices);
  for (std::int64_t i = 0; i < node.devices; ++i)
    node.class_of.push_back(static_cast<std::int32_t>(i < classes ? i : draw.below(classes)));
  for (std::int64_t i = 0; i < classes * classes; ++i) {
    bool known = !node.rules.empty() && !draw.one_in(3);
    node.rule_within.push_back(
        known ? static_cast<std::int32_t>(draw.below(static_cast<std::int64_t>(node.rules.size())))
              : add_rule(false));
  }
  if (nodes > 1) node.rule_between = add_rule(true);
  return Topology("draw " + std::to_string(seed), node, fabric, nodes);
}

}  // namespace reshard::test
