// SPDX-License-Identifier: BSD-3-Clause
// A route line selects pairs of devices by groups or by listed pairs, so two devices that lie in
// the same groups and the same listed pairs have the same routes: they are one class. The classes
// are found by splitting: start with one class of all devices, and let each line split off the
// devices that it names. Then each line fills the still empty places of the table that it selects.
//
// Listed pairs that form a matching, such as NVLink bridges, keep the two devices of a pair in one
// class: seen from anywhere else they are alike. Any other list, such as a ring, tells its devices
// apart.
#include "core/topology/route_table.h"

#include <map>

namespace reshard {
namespace {

class Classes {
 public:
  explicit Classes(std::int32_t devices) : class_of_(static_cast<std::size_t>(devices), 0) {}

  // Entry by entry: devices of one class that carry the same key stay together, apart from those
  // without one.
  void split(const std::vector<std::pair<std::int32_t, std::int32_t>>& devices_and_keys) {
    // (old class, key) -> new class.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> made;
    for (auto [device, key] : devices_and_keys) {
      std::int32_t& mine = class_of_[static_cast<std::size_t>(device)];
      auto [entry, is_new] = made.try_emplace({mine, key}, next_);
      if (is_new) ++next_;
      mine = entry->second;
    }
  }

  // Renumbers densely in order of first device; returns the number of classes.
  std::int32_t settle() {
    std::vector<std::int32_t> number(static_cast<std::size_t>(next_), -1);
    std::int32_t count = 0;
    for (std::int32_t& mine : class_of_) {
      std::int32_t& settled = number[static_cast<std::size_t>(mine)];
      if (settled < 0) settled = count++;
      mine = settled;
    }
    return count;
  }

  const std::vector<std::int32_t>& class_of() const { return class_of_; }

 private:
  std::vector<std::int32_t> class_of_;
  std::int32_t next_ = 1;
};

// Two devices stay together only where the same listed pairs name both, and a pair names two
// devices: so only where they are each other's partner and nobody else's.
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
  std::vector<bool> done(description.groups.size(), false);
  auto split_by_group = [&](std::int32_t group) {
    if (group < 0 || done[static_cast<std::size_t>(group)]) return;
    done[static_cast<std::size_t>(group)] = true;
    std::vector<std::pair<std::int32_t, std::int32_t>> members;
    for (std::int32_t device : description.groups[static_cast<std::size_t>(group)].devices)
      members.push_back({device, 0});
    classes.split(members);
  };
  for (const RouteLine& line : description.routes) {
    split_by_group(line.a);
    split_by_group(line.b);
    if (line.where == RouteLine::Where::Pairs) split_by_pairs(line, classes);
  }
  return classes;
}

// Fills the places of the table that one line selects.
class Filler {
 public:
  Filler(const TopologyDescription& description, RouteTable& table, std::int32_t classes)
      : description_(description),
        table_(table),
        sizes_(static_cast<std::size_t>(classes), 0),
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
  std::size_t class_of(std::int32_t device) const {
    return static_cast<std::size_t>(table_.class_of[static_cast<std::size_t>(device)]);
  }
  // Whether two different devices are in these classes.
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
    for (std::int32_t device : description_.groups[static_cast<std::size_t>(group)].devices)
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
  std::vector<std::int32_t> sizes_, first_;  // per class: devices in it, the lowest
};

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
  // One class needs no list.
  if (count == 1) table.class_of.clear();
  return table;
}

}  // namespace reshard
