// SPDX-License-Identifier: BSD-3-Clause
// The simplest topology: every device has one port into a switch that never limits.
#pragma once

#include "core/topology/topology.h"

namespace reshard::test {

inline Topology star(std::int32_t devices, std::int64_t bytes_per_s = 100'000'000'000,
                     std::int64_t latency_ps = 1'000'000) {
  NodeTemplate node;
  node.devices = devices;
  node.ports = {{"port", bytes_per_s, bytes_per_s}};
  node.rules = {{{{Hop::Kind::SourceOut, 0}, {Hop::Kind::DestinationIn, 0}},
                 latency_ps,
                 std::nullopt,
                 Transport::NVLink}};
  node.rule_within = {devices == 1 ? -1 : 0};
  return Topology("star", std::move(node), {}, 1);
}

}  // namespace reshard::test
