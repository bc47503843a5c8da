// SPDX-License-Identifier: BSD-3-Clause
// Helpers for tests of readers and writers of machines.
#pragma once

#include <string>

#include "core/base/errors.h"
#include "core/topology/machine_lines.h"
#include "sim/machine_files/formats.h"

namespace reshard::sim {

inline std::string refusal(const std::string& text, const std::string& file = "f") {
  try {
    read_topology(text, file);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// "transport class GB/s [cap] latency: resource resource" of one route.
inline std::string route_of(const Topology& topology, std::int32_t from, std::int32_t to) {
  const RouteRule& rule = topology.rule(Rank{from}, Rank{to});
  std::string out = std::string(text(rule.transport)) + " " + std::string(text(rule.path_class()));
  for (ResourceId id : topology.route(Rank{from}, Rank{to}).resources)
    out += " " + topology.resource_name(id) + "=" +
           figure_text(FigureUnit::Rate, topology.resource_bytes_per_s(id));
  if (rule.cap_bytes_per_s) out += " cap=" + figure_text(FigureUnit::Rate, *rule.cap_bytes_per_s);
  return out + " " + figure_text(FigureUnit::Time, rule.latency_ps);
}

}  // namespace reshard::sim
