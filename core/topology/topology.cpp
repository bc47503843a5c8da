// SPDX-License-Identifier: BSD-3-Clause
// Everything is arithmetic on the node template: with S shared resources, P ports and D devices a
// node has S + 2*P*D resources, so a resource's number, name and capacity follow from its position.
// A topology of any size stores one node template and, per device, only `Where`.
#include "core/topology/topology.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/integers.h"

namespace reshard {
namespace {

std::int64_t count_of(const auto& list) { return static_cast<std::int64_t>(list.size()); }

std::int64_t resources_per_node(const NodeTemplate& node) {
  return count_of(node.shared) + 2 * count_of(node.ports) * node.devices;
}

[[noreturn]] void refuse(const std::string& topology, const std::string& what) {
  throw InputError(fmt::format("topology {}: {}", topology, what));
}

// Checks capacities of ports, shared and fabric resources, and the members of groups.
void check_parts(const std::string& name, const NodeTemplate& node,
                 const std::vector<SharedResource>& fabric) {
  auto check_rate = [&](const std::string& resource, std::int64_t rate) {
    if (rate < 1 || rate > kMaxBytes)
      refuse(name, fmt::format("{}: expected a capacity of 1 to 2^62 bytes per second, found {}",
                               resource, rate));
  };
  for (const Port& port : node.ports) {
    check_rate(port.name, port.out_bytes_per_s);
    check_rate(port.name, port.in_bytes_per_s);
  }
  for (const SharedResource& shared : node.shared) check_rate(shared.name, shared.bytes_per_s);
  for (const SharedResource& shared : fabric) check_rate(shared.name, shared.bytes_per_s);
  for (const DeviceGroup& group : node.groups) {
    std::int32_t previous = -1;
    for (std::int32_t device : group.devices) {
      if (device <= previous || device >= node.devices)
        refuse(name, fmt::format("group {}: expected devices below {} in ascending order, found {}",
                                 group.name, node.devices, device));
      previous = device;
    }
    if (group.devices.empty())
      refuse(name, fmt::format("group {}: expected at least one device, found none", group.name));
  }
}

// Checks that a rule's resources exist and that none is crossed twice. Inside a node the source's
// and the destination's shared resources are the same.
void check_rule(const std::string& name, const NodeTemplate& node, std::int64_t fabric_count,
                const RouteRule& rule, bool within) {
  if (rule.hops.empty())
    refuse(name, "expected a route to cross at least one resource, found none");
  if (rule.latency_ps < 0)
    refuse(name, fmt::format("expected a latency of at least 0, found {} ps", rule.latency_ps));
  if (rule.cap_bytes_per_s && *rule.cap_bytes_per_s < 1)
    refuse(name, fmt::format("expected a cap of at least 1 byte per second, found {}",
                             *rule.cap_bytes_per_s));
  std::vector<Hop> seen;
  for (Hop hop : rule.hops) {
    bool of_port = hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::DestinationIn;
    std::int64_t limit = of_port                         ? count_of(node.ports)
                         : hop.kind == Hop::Kind::Fabric ? fabric_count
                                                         : count_of(node.shared);
    if (hop.index < 0 || hop.index >= limit)
      refuse(name,
             fmt::format("route: expected a resource index below {}, found {}", limit, hop.index));
    if (within && hop.kind == Hop::Kind::DestinationNodeShared)
      hop.kind = Hop::Kind::SourceNodeShared;
    if (std::find(seen.begin(), seen.end(), hop) != seen.end())
      refuse(name, "expected a route to cross each resource once, found one twice");
    seen.push_back(hop);
  }
}

// Returns the number of classes. Checks that every pair of devices inside a node has a rule.
std::int32_t check_classes(const std::string& name, const NodeTemplate& node) {
  IndexVector<std::int32_t, std::int64_t> sizes(1, node.devices);
  if (!node.class_of.empty()) {
    if (count_of(node.class_of) != node.devices)
      refuse(name, fmt::format("expected a class for each of {} devices, found {}", node.devices,
                               node.class_of.size()));
    sizes.assign(to_index(kMaxDeviceClasses), 0);
    for (std::int32_t c : node.class_of) {
      if (c < 0 || c >= kMaxDeviceClasses)
        refuse(name,
               fmt::format("expected device classes below {}, found {}", kMaxDeviceClasses, c));
      ++sizes[c];
    }
    while (sizes.back() == 0) sizes.pop_back();
  }
  std::size_t classes = sizes.size();
  bool alone = node.devices == 1;
  if (node.rule_within.size() != classes * classes && !(alone && node.rule_within.empty()))
    refuse(name, fmt::format("expected {} rules within a node, one per pair of classes, found {}",
                             classes * classes, node.rule_within.size()));
  for (std::size_t from = 0; from < classes && !alone; ++from)
    for (std::size_t to = 0; to < classes; ++to) {
      std::int32_t rule = node.rule_within[from * classes + to];
      if (rule >= static_cast<std::int32_t>(node.rules.size()))
        refuse(name, fmt::format("expected a rule below {}, found {}", node.rules.size(), rule));
      bool used = sizes[from] > 0 && sizes[to] > (from == to ? 1 : 0);
      if (used && rule < 0)
        refuse(name,
               "expected a route for every pair of devices of a node, found a pair without one");
    }
  return static_cast<std::int32_t>(classes);
}

void check_rules(const std::string& name, const NodeTemplate& node, std::int64_t fabric_count,
                 std::int32_t nodes) {
  if (nodes > 1 && node.rule_between < 0)
    refuse(name, fmt::format("expected a route between nodes for {} nodes, found none", nodes));
  if (node.rule_between >= static_cast<std::int32_t>(node.rules.size()))
    refuse(name, fmt::format("expected a rule below {} between nodes, found {}", node.rules.size(),
                             node.rule_between));
  IndexVector<std::int32_t, bool> within(node.rules.size(), false);
  for (std::int32_t rule : node.rule_within)
    if (rule >= 0) within[rule] = true;
  for (std::size_t rule = 0; rule < node.rules.size(); ++rule)
    check_rule(name, node, fabric_count, node.rules[rule], within[rule]);
}

// Lists and texts are preceded by their lengths, so that different contents hash differently.
class ContentHasher {
 public:
  template <class... Parts>
  void add_all(const Parts&... parts) {
    (add(parts), ...);
  }
  Digest digest() const { return hasher_.digest(); }

 private:
  void add(std::int64_t value) { hasher_.add(value); }
  void add(const std::string& text) {
    add(count_of(text));
    hasher_.add(std::string_view(text));
  }
  template <class Part>
  void add(const std::vector<Part>& list) {
    add(count_of(list));
    for (const Part& part : list) add(part);
  }
  void add(const Port& port) { add_all(port.name, port.out_bytes_per_s, port.in_bytes_per_s); }
  void add(const SharedResource& shared) { add_all(shared.name, shared.bytes_per_s); }
  void add(const DeviceGroup& group) { add_all(group.name, group.devices); }
  void add(const Hop& hop) { add_all(static_cast<std::int64_t>(hop.kind), hop.index); }
  void add(const RouteRule& rule) {
    add_all(rule.hops, rule.latency_ps, rule.cap_bytes_per_s.value_or(0),
            static_cast<std::int64_t>(rule.transport));
    // A class that is not stated adds nothing.
    if (rule.stated_class) add_all("class", static_cast<std::int64_t>(*rule.stated_class));
  }
  void add(const Machine& machine) {
    if (machine == Machine{}) return;
    add_all("machine", machine.compute_capability.value_or(0),
            machine.cpu ? static_cast<std::int64_t>(*machine.cpu) : std::int64_t{-1},
            std::int64_t{machine.nvls}, std::int64_t{machine.sharp});
    if (machine.transport)
      add_all("transport", static_cast<std::int64_t>(*machine.transport), machine.nccl_version);
    for (const std::optional<std::int64_t>& figure : machine.figures) add(figure.value_or(-1));
  }
  void add(const NodeTemplate& node) {
    add_all(node.devices, node.ports, node.shared, node.groups, node.rules, node.class_of,
            node.rule_within, node.rule_between, node.machine);
  }

  Hasher hasher_;
};

}  // namespace

std::string_view text(Transport transport) {
  constexpr std::array<std::string_view, 4> kWords{"nvlink", "pcie", "host", "network"};
  return kWords[to_index(transport)];
}

std::string_view text(PathClass path_class) { return kPathClasses[to_index(path_class)]; }

std::optional<PathClass> find_path_class(std::string_view word) {
  auto found = std::find(kPathClasses.begin(), kPathClasses.end(), word);
  if (found == kPathClasses.end()) return std::nullopt;
  return static_cast<PathClass>(found - kPathClasses.begin());
}

PathClass RouteRule::path_class() const {
  if (stated_class) return *stated_class;
  switch (transport) {
    case Transport::NVLink:
      return PathClass::NVL;
    case Transport::PCIe:
      return PathClass::PIX;
    case Transport::Host:
      return PathClass::SYS;
    case Transport::Network:
      return PathClass::NET;
  }
  return PathClass::NET;
}

Topology::Topology(std::string name, NodeTemplate node, std::vector<SharedResource> fabric,
                   std::int32_t nodes)
    : name_(std::move(name)), node_(std::move(node)), fabric_(std::move(fabric)), nodes_(nodes) {
  if (nodes_ < 1) refuse(name_, fmt::format("expected at least one node, found {}", nodes_));
  if (node_.devices < 1)
    refuse(name_, fmt::format("expected at least one device per node, found {}", node_.devices));
  std::int64_t all = std::int64_t{nodes_} * node_.devices;
  if (all > kMaxRanks) refuse(name_, fmt::format("expected at most 2^20 devices, found {}", all));
  std::int64_t resources = resources_per_node(node_) * nodes_ + count_of(fabric_);
  if (resources > kMaxResources)
    refuse(name_, fmt::format("expected at most 2^24 resources, found {}", resources));
  check_parts(name_, node_, fabric_);
  classes_ = check_classes(name_, node_);
  check_rules(name_, node_, count_of(fabric_), nodes_);

  per_node_ = static_cast<std::int32_t>(resources_per_node(node_));
  auto shared = static_cast<std::int32_t>(node_.shared.size()),
       ports = static_cast<std::int32_t>(node_.ports.size());
  where_.reserve(to_index(devices()));
  for (Rank device{0}; to_int(device) < devices(); device = Rank{to_int(device) + 1})
    where_.push_back({node_of(device), class_of(device),
                      node_of(device) * per_node_ + shared + 2 * ports * local_of(device)});

  ContentHasher hasher;
  hasher.add_all(name_, node_, fabric_, nodes_);
  fingerprint_ = hasher.digest();
}

std::int32_t Topology::resource_count() const {
  return static_cast<std::int32_t>(resources_per_node(node_) * nodes_ + count_of(fabric_));
}

namespace {

// What a resource's number refers to: exactly one of the three kinds.
struct ResourceOwner {
  std::int64_t fabric = -1;
  std::int64_t node = -1, shared = -1;
  std::int64_t device = -1, port = -1;  // device within the node
  bool out = false;
};

ResourceOwner place_of(const Topology& topology, ResourceId id) {
  RESHARD_CHECK(static_cast<std::int32_t>(id) >= 0 &&
                    static_cast<std::int32_t>(id) < topology.resource_count(),
                "resource out of range");
  std::int64_t per_node = resources_per_node(topology.node()),
               number = static_cast<std::int32_t>(id);
  ResourceOwner place;
  if (number >= per_node * topology.nodes()) {
    place.fabric = number - per_node * topology.nodes();
    return place;
  }
  place.node = number / per_node;
  std::int64_t rest = number % per_node, shared_count = count_of(topology.node().shared),
               ports = count_of(topology.node().ports);
  if (rest < shared_count) {
    place.shared = rest;
    return place;
  }
  rest -= shared_count;
  place.device = rest / (2 * ports);
  place.port = rest % (2 * ports) / 2;
  place.out = rest % 2 == 0;
  return place;
}

}  // namespace

std::string Topology::resource_name(ResourceId id) const {
  ResourceOwner place = place_of(*this, id);
  if (place.fabric >= 0) return fabric_[place.fabric].name;
  if (place.shared >= 0)
    return fmt::format("node{}.{}", place.node, node_.shared[place.shared].name);
  return fmt::format("node{}.gpu{}.{}.{}", place.node, place.device, node_.ports[place.port].name,
                     place.out ? "out" : "in");
}

Hop Topology::hop_of(ResourceId id) const {
  ResourceOwner place = place_of(*this, id);
  auto hop = [](Hop::Kind kind, std::int64_t index) {
    return Hop{kind, static_cast<std::int32_t>(index)};
  };
  if (place.fabric >= 0) return hop(Hop::Kind::Fabric, place.fabric);
  if (place.shared >= 0) return hop(Hop::Kind::SourceNodeShared, place.shared);
  return hop(place.out ? Hop::Kind::SourceOut : Hop::Kind::DestinationIn, place.port);
}

std::string Topology::hop_name(const Hop& hop) const {
  switch (hop.kind) {
    case Hop::Kind::SourceOut:
      return node_.ports[hop.index].name + ".out";
    case Hop::Kind::DestinationIn:
      return node_.ports[hop.index].name + ".in";
    case Hop::Kind::SourceNodeShared:
    case Hop::Kind::DestinationNodeShared:
      return node_.shared[hop.index].name;
    case Hop::Kind::Fabric:
      break;
  }
  return fabric_[hop.index].name;
}

std::int64_t Topology::resource_bytes_per_s(ResourceId id) const {
  ResourceOwner place = place_of(*this, id);
  if (place.fabric >= 0) return fabric_[place.fabric].bytes_per_s;
  if (place.shared >= 0) return node_.shared[place.shared].bytes_per_s;
  const Port& port = node_.ports[place.port];
  return place.out ? port.out_bytes_per_s : port.in_bytes_per_s;
}

void Topology::no_route(Rank source, Rank destination) const {
  RESHARD_CHECK(false, fmt::format("no route from device {} to device {} of {}", to_int(source),
                                   to_int(destination), name_));
}

Route Topology::route(Rank source, Rank destination) const {
  const RouteRule& from_rule = rule(source, destination);
  Route out{{}, from_rule.latency_ps, from_rule.cap_bytes_per_s, from_rule.transport};
  out.resources.reserve(from_rule.hops.size());
  for (const Hop& hop : from_rule.hops) out.resources.push_back(resource(hop, source, destination));
  return out;
}

std::vector<NamedGroup> Topology::groups() const {
  std::vector<NamedGroup> out;
  for (std::int32_t n = 0; n < nodes_ && nodes_ > 1; ++n) {
    out.push_back({fmt::format("node{}", n), {}});
    for (std::int32_t d = 0; d < node_.devices; ++d)
      out.back().devices.push_back(static_cast<Rank>(n * node_.devices + d));
  }
  for (std::int32_t n = 0; n < nodes_; ++n)
    for (const DeviceGroup& group : node_.groups) {
      out.push_back({fmt::format("node{}.{}", n, group.name), {}});
      for (std::int32_t d : group.devices)
        out.back().devices.push_back(static_cast<Rank>(n * node_.devices + d));
    }
  return out;
}

}  // namespace reshard
