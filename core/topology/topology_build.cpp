// SPDX-License-Identifier: BSD-3-Clause
// Builds a topology from a description, and writes a description as text.
//
// A route line selects pairs of devices by groups or by listed pairs, so two devices in the same
// groups and the same listed pairs have the same routes: they form one class. Classes are found by
// splitting: start with one class of all devices, and let each line split off the devices that it
// names. Then each line fills the entries of the table that it selects and that are still empty.
//
// If the listed pairs are a matching, such as NVLink bridges, the two devices of a pair stay in one
// class: to all other devices they look the same. Any other list, such as a ring, distinguishes its
// devices.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/units.h"
#include "core/topology/machine_lines.h"
#include "core/topology/topology_text.h"

namespace reshard {

namespace {

class Classes {
 public:
  explicit Classes(std::int32_t devices) : class_of_(to_index(devices), 0) {}

  // Splits entry by entry: devices of one class with the same key stay together, apart from those
  // without a key.
  void split(const std::vector<std::pair<std::int32_t, std::int32_t>>& devices_and_keys) {
    // (old class, key) -> new class.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> made;
    for (auto [device, key] : devices_and_keys) {
      std::int32_t& mine = class_of_[device];
      auto [entry, is_new] = made.try_emplace({mine, key}, next_);
      if (is_new) ++next_;
      mine = entry->second;
    }
  }

  // Renumbers densely in order of first device; returns the number of classes.
  std::int32_t settle() {
    IndexVector<std::int32_t, std::int32_t> number(to_index(next_), -1);
    std::int32_t count = 0;
    for (std::int32_t& mine : class_of_) {
      std::int32_t& settled = number[mine];
      if (settled < 0) settled = count++;
      mine = settled;
    }
    return count;
  }

  const IndexVector<std::int32_t, std::int32_t>& class_of() const { return class_of_; }

 private:
  IndexVector<std::int32_t, std::int32_t> class_of_;
  std::int32_t next_ = 1;
};

// Two devices stay together only if the same listed pairs name both. A pair names two devices, so
// this needs each to be the only partner of the other.
void split_by_pairs(const RouteLine& line, Classes& classes) {
  std::vector<std::pair<std::int32_t, std::int32_t>> keyed;
  for (std::size_t i = 0; i < line.pairs.size(); ++i) {
    keyed.push_back({line.pairs[i].first, static_cast<std::int32_t>(i)});
    keyed.push_back({line.pairs[i].second, static_cast<std::int32_t>(i)});
  }
  classes.split(keyed);
}

Classes classes_of(const TopologyDescription& description) {
  Classes classes(description.devices);
  IndexVector<std::int32_t, bool> done(description.groups.size(), false);
  auto split_by_group = [&](std::int32_t group) {
    if (group < 0 || done[group]) return;
    done[group] = true;
    std::vector<std::pair<std::int32_t, std::int32_t>> members;
    for (std::int32_t device : description.groups[group].devices) members.push_back({device, 0});
    classes.split(members);
  };
  for (const RouteLine& line : description.routes) {
    split_by_group(line.a);
    split_by_group(line.b);
    if (line.where == RouteLine::Where::Pairs) split_by_pairs(line, classes);
  }
  return classes;
}

// Fills the table entries that one line selects.
class Filler {
 public:
  Filler(const TopologyDescription& description, RouteTable& table, std::int32_t classes)
      : description_(description),
        table_(table),
        sizes_(to_index(classes), 0),
        first_(sizes_.size(), -1) {
    for (std::int32_t device = 0; device < description.devices; ++device) {
      std::size_t mine = class_of(device);
      if (sizes_[mine]++ == 0) first_[mine] = device;
    }
    table_.rule_within.assign(sizes_.size() * sizes_.size(), -1);
  }

  void fill(std::size_t line) {
    const RouteLine& route = description_.routes[line];
    std::vector<std::size_t> all(sizes_.size());
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = c;
    switch (route.where) {
      case RouteLine::Where::Between:
        if (table_.rule_between < 0) {
          table_.rule_between = static_cast<std::int32_t>(line);
          table_.taken[line] = true;
        }
        break;
      case RouteLine::Where::Within:
        fill_block(line, all, all);
        break;
      case RouteLine::Where::Pairs:
        for (auto [a, b] : route.pairs) {
          fill_block(line, {class_of(a)}, {class_of(b)});
          fill_block(line, {class_of(b)}, {class_of(a)});
        }
        break;
      case RouteLine::Where::Groups:
        fill_block(line, classes_in(route.a), classes_in(route.b));
        fill_block(line, classes_in(route.b), classes_in(route.a));
        break;
      case RouteLine::Where::FromTo:
        fill_block(line, classes_in(route.a), classes_in(route.b));
        break;
    }
  }

  std::optional<std::pair<std::int32_t, std::int32_t>> missing() const {
    for (std::size_t from = 0; from < sizes_.size(); ++from)
      for (std::size_t to = 0; to < sizes_.size(); ++to)
        if (exists(from, to) && table_.rule_within[from * sizes_.size() + to] < 0)
          return std::pair{first_[from], from == to ? second_of(from) : first_[to]};
    return std::nullopt;
  }

 private:
  std::size_t class_of(std::int32_t device) const { return to_index(table_.class_of[device]); }
  // Whether the classes have two different devices to route between.
  bool exists(std::size_t from, std::size_t to) const { return from != to || sizes_[from] > 1; }

  void fill_block(std::size_t line, const std::vector<std::size_t>& sources,
                  const std::vector<std::size_t>& destinations) {
    for (std::size_t from : sources)
      for (std::size_t to : destinations) {
        std::int32_t& place = table_.rule_within[from * sizes_.size() + to];
        if (place >= 0 || !exists(from, to)) continue;
        place = static_cast<std::int32_t>(line);
        table_.taken[line] = true;
      }
  }

  std::vector<std::size_t> classes_in(std::int32_t group) const {
    std::vector<bool> in(sizes_.size(), false);
    std::vector<std::size_t> out;
    for (std::int32_t device : description_.groups[group].devices)
      if (!in[class_of(device)]) {
        in[class_of(device)] = true;
        out.push_back(class_of(device));
      }
    return out;
  }

  std::int32_t second_of(std::size_t wanted) const {
    std::int32_t device = first_[wanted] + 1;
    while (class_of(device) != wanted) ++device;
    return device;
  }

  const TopologyDescription& description_;
  RouteTable& table_;
  std::vector<std::int32_t> sizes_, first_;  // per class: number of devices, lowest device
};

using Counts = TopologyDescription::Counts;

std::string hop_word(const TopologyDescription& description, const Hop& hop, bool between) {
  switch (hop.kind) {
    case Hop::Kind::SourceOut:
      return description.ports[hop.index].name + ".out";
    case Hop::Kind::DestinationIn:
      return description.ports[hop.index].name + ".in";
    case Hop::Kind::SourceNodeShared:
      return fmt::format("{}{}", between ? "source." : "", description.shared[hop.index].name);
    case Hop::Kind::DestinationNodeShared:
      return fmt::format("{}{}", between ? "destination." : "", description.shared[hop.index].name);
    case Hop::Kind::Fabric:
      return description.fabric[hop.index].name;
  }
  return {};
}

std::string where_words(const TopologyDescription& description, const RouteLine& route) {
  auto group = [&](std::int32_t index) { return description.groups[index].name; };
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
  out += fmt::format(" transport {}", text(route.rule.transport));
  if (route.rule.stated_class) out += fmt::format(" class {}", text(*route.rule.stated_class));
  return out + "\n";
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

RouteTable make_route_table(const TopologyDescription& description) {
  RouteTable table;
  Classes classes = classes_of(description);
  std::int32_t count = classes.settle();
  table.too_many_classes = count > kMaxDeviceClasses;
  if (table.too_many_classes) return table;
  table.class_of = classes.class_of();
  for (const RouteLine& line : description.routes) table.rules.push_back(line.rule);
  table.taken.assign(description.routes.size(), false);
  Filler filler(description, table, count);
  for (std::size_t line = 0; line < description.routes.size(); ++line) filler.fill(line);
  table.missing = filler.missing();
  // A single class needs no list.
  if (count == 1) table.class_of.clear();
  return table;
}

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
            fmt::format("topology {}: expected no count (the machine has a fixed size), found :{}",
                        description.name, *count));
      break;
  }
  counted.name += counted.variant;
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
  node.machine = counted.machine;
  node.assumed = std::move(counted.assumed);
  return Topology(std::move(counted.name), std::move(node), std::move(counted.fabric),
                  counted.nodes);
}

std::string to_text(const TopologyDescription& description) {
  std::string out = "reshard-topology 1\n";
  out += fmt::format("name {}\ndevices {}\n", description.name, description.devices);
  if (description.nodes != 1) out += fmt::format("nodes {}\n", description.nodes);
  if (description.counts != Counts::Nothing)
    out += fmt::format("count {}\n", description.counts == Counts::Nodes ? "nodes" : "devices");
  out += machine_lines(description.machine);
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
