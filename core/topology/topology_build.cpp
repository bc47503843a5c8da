// SPDX-License-Identifier: BSD-3-Clause
// From a description to a topology, and back to text.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/topology/route_table.h"

namespace reshard {
namespace {

using Counts = TopologyDescription::Counts;

// The shortest exact spelling: "450GB/s", "6.887GB/s", "1B/s".
std::string rate_word(std::int64_t rate) {
  if (rate % 1'000'000 != 0) return fmt::format("{}B/s", rate);
  std::string number = decimal_text(rate, 1'000'000'000, 3);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number + "GB/s";
}

std::string time_word(std::int64_t ps) {
  return ps % 1'000'000 == 0 && ps > 0 ? fmt::format("{}us", ps / 1'000'000)
                                       : fmt::format("{}ps", ps);
}

std::string hop_word(const TopologyDescription& description, const Hop& hop, bool between) {
  auto index = static_cast<std::size_t>(hop.index);
  switch (hop.kind) {
    case Hop::Kind::SourceOut:
      return description.ports[index].name + ".out";
    case Hop::Kind::DestinationIn:
      return description.ports[index].name + ".in";
    case Hop::Kind::SourceNodeShared:
      return fmt::format("{}{}", between ? "source." : "", description.shared[index].name);
    case Hop::Kind::DestinationNodeShared:
      return fmt::format("{}{}", between ? "destination." : "", description.shared[index].name);
    case Hop::Kind::Fabric:
      return description.fabric[index].name;
  }
  return {};
}

std::string where_words(const TopologyDescription& description, const RouteLine& route) {
  auto group = [&](std::int32_t index) {
    return description.groups[static_cast<std::size_t>(index)].name;
  };
  switch (route.where) {
    case RouteLine::Where::Within:
      return "within";
    case RouteLine::Where::Between:
      return "between";
    case RouteLine::Where::Groups:
      return route.a == route.b ? group(route.a) : group(route.a) + " " + group(route.b);
    case RouteLine::Where::FromTo:
      return group(route.a) + " to " + group(route.b);
    case RouteLine::Where::Pairs:
      break;
  }
  std::string out = "pairs";
  for (auto [a, b] : route.pairs) out += fmt::format(" {}-{}", a, b);
  return out;
}

std::string route_line(const TopologyDescription& description, const RouteLine& route) {
  std::string out = fmt::format("route {} via", where_words(description, route));
  for (const Hop& hop : route.rule.hops)
    out += fmt::format(" {}", hop_word(description, hop, route.where == RouteLine::Where::Between));
  out += fmt::format(" latency {}", time_word(route.rule.latency_ps));
  if (route.rule.cap_bytes_per_s)
    out += fmt::format(" cap {}", rate_word(*route.rule.cap_bytes_per_s));
  return out + fmt::format(" transport {}\n", text(route.rule.transport));
}

std::string group_line(const DeviceGroup& group) {
  std::string out = "group " + group.name;
  for (std::size_t i = 0; i < group.devices.size();) {
    std::size_t j = i;
    while (j + 1 < group.devices.size() && group.devices[j + 1] == group.devices[j] + 1) ++j;
    out += i == j ? fmt::format(" {}", group.devices[i])
                  : fmt::format(" {}-{}", group.devices[i], group.devices[j]);
    i = j + 1;
  }
  return out + "\n";
}

std::int32_t checked_count(const std::string& name, std::int64_t count, std::int64_t limit,
                           std::string_view what) {
  if (count < 1 || count > limit)
    throw InputError(
        fmt::format("topology {}: expected 1 to {} {}, found {}", name, limit, what, count));
  return static_cast<std::int32_t>(count);
}

}  // namespace

Topology build_topology(const TopologyDescription& description, std::optional<std::int64_t> count) {
  TopologyDescription counted = description;
  switch (description.counts) {
    case Counts::Nodes:
      if (count)
        counted.nodes =
            checked_count(description.name, *count, kMaxRanks / description.devices, "nodes");
      counted.name += fmt::format(":{}", counted.nodes);
      break;
    case Counts::Devices:
      if (count) counted.devices = checked_count(description.name, *count, kMaxRanks, "devices");
      counted.name += fmt::format(":{}", counted.devices);
      break;
    case Counts::Nothing:
      if (count)
        throw InputError(
            fmt::format("topology {}: expected no count (the machine is as it is), found :{}",
                        description.name, *count));
      break;
  }
  RouteTable table = make_route_table(counted);
  NodeTemplate node;
  node.devices = counted.devices;
  node.ports = std::move(counted.ports);
  node.shared = std::move(counted.shared);
  node.groups = std::move(counted.groups);
  node.rules = std::move(table.rules);
  node.class_of = std::move(table.class_of);
  node.rule_within = std::move(table.rule_within);
  node.rule_between = table.rule_between;
  return Topology(std::move(counted.name), std::move(node), std::move(counted.fabric),
                  counted.nodes);
}

std::string to_text(const TopologyDescription& description) {
  std::string out = "reshard-topology 1\n";
  out += fmt::format("name {}\ndevices {}\n", description.name, description.devices);
  if (description.nodes != 1) out += fmt::format("nodes {}\n", description.nodes);
  if (description.counts != Counts::Nothing)
    out += fmt::format("count {}\n", description.counts == Counts::Nodes ? "nodes" : "devices");
  for (const Port& port : description.ports) {
    out += fmt::format("port {} {}", port.name, rate_word(port.out_bytes_per_s));
    out += port.in_bytes_per_s == port.out_bytes_per_s
               ? "\n"
               : fmt::format(" in {}\n", rate_word(port.in_bytes_per_s));
  }
  for (const SharedResource& shared : description.shared)
    out += fmt::format("shared {} {}\n", shared.name, rate_word(shared.bytes_per_s));
  for (const SharedResource& shared : description.fabric)
    out += fmt::format("fabric {} {}\n", shared.name, rate_word(shared.bytes_per_s));
  for (const DeviceGroup& group : description.groups) out += group_line(group);
  for (const RouteLine& route : description.routes) out += route_line(description, route);
  return out;
}

}  // namespace reshard
