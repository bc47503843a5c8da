// SPDX-License-Identifier: BSD-3-Clause
// Devices, the resources between them, and routes, as plain data.
//
// A topology is `nodes` copies of one node of `devices_per_node` devices. Device d of node k has
// the number k * devices_per_node + d, and rank r runs on device r. Resources have a capacity that
// flows share. Every *port* of the node template gives each device a directed `out` and `in`; a
// *shared* resource exists once per node (such as the host memory that staged copies cross in both
// directions); a *fabric* resource exists once in total. Routes are rules, never a table of all
// pairs: one rule per pair of device *classes* inside a node, one rule between nodes. A route names
// the resources that it crosses in order, one latency, and an optional cap on each flow's rate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest.h"
#include "core/base/ids.h"
#include "core/topology/machine.h"
#include "core/topology/path_class.h"

namespace reshard {

enum class Transport : std::uint8_t { NVLink, PCIe, Host, Network };  // how a transfer is carried
std::string_view text(Transport transport);  // "nvlink", "pcie", "host", "network"

// A pair of directed resources of every device.
struct Port {
  std::string name;
  std::int64_t out_bytes_per_s, in_bytes_per_s;
};

// One resource per node (shared) or one in total (fabric).
struct SharedResource {
  std::string name;
  std::int64_t bytes_per_s;
};

// A named set of devices of a node: a PCIe switch, a NUMA node. Bounds use it as a cut.
struct DeviceGroup {
  std::string name;
  std::vector<std::int32_t> devices;  // numbers within the node, ascending
};

// One resource that a route crosses, named relative to its ends.
struct Hop {
  enum class Kind : std::uint8_t {
    SourceOut,
    DestinationIn,
    SourceNodeShared,
    DestinationNodeShared,
    Fabric
  };
  Kind kind;
  std::int32_t index;  // of the port, shared or fabric resource
  friend bool operator==(const Hop&, const Hop&) = default;
};

struct RouteRule {
  std::vector<Hop> hops;  // in order; not empty
  std::int64_t latency_ps = 0;
  std::optional<std::int64_t> cap_bytes_per_s;  // of each flow
  Transport transport = Transport::Network;
  // If stated; else path_class() follows from the transport.
  std::optional<PathClass> stated_class = {};
  PathClass path_class() const;
};

struct NodeTemplate {
  std::int32_t devices = 1;
  IndexVector<std::int32_t, Port> ports;
  IndexVector<std::int32_t, SharedResource> shared;
  IndexVector<std::int32_t, DeviceGroup> groups;
  IndexVector<std::int32_t, RouteRule> rules;
  // Devices of a node with the same routes form a class, so a node of 4096 identical devices needs
  // a table of one entry. The class of each device of the node, numbered densely from 0; empty: all
  // devices are class 0.
  IndexVector<std::int32_t, std::int32_t> class_of;
  // [class of source * classes + class of destination] -> rule; -1 for a class of one device with
  // itself.
  IndexVector<std::int32_t, std::int32_t> rule_within;
  std::int32_t rule_between = -1;  // rule between nodes; -1 if there is only one node
  Machine machine = {};
  // Assumptions of the reader that described it, one per line; not part of the identity.
  std::vector<std::string> assumed = {};
};

struct Route {
  std::vector<ResourceId> resources;
  std::int64_t latency_ps;
  std::optional<std::int64_t> cap_bytes_per_s;
  Transport transport;
};

// A named group of devices, by global number and ascending: a cut for bounds and a row in reports.
struct NamedGroup {
  std::string name;  // "node1", "node1.socket0"
  std::vector<Rank> devices;
};

class Topology {
 public:
  // Checks everything; a topology does not change later. Throws InputError: no device, more than
  // 2^20 devices or 2^24 resources, a capacity below 1 byte/s, several nodes without a rule between
  // them, a pair of devices without a route, a route that crosses nothing or one resource twice, an
  // index out of range.
  Topology(std::string name, NodeTemplate node, std::vector<SharedResource> fabric,
           std::int32_t nodes);

  const std::string& name() const { return name_; }  // "dgx-h100:2"
  std::int32_t nodes() const { return nodes_; }
  const NodeTemplate& node() const { return node_; }
  const Machine& machine() const { return node_.machine; }
  const IndexVector<std::int32_t, SharedResource>& fabric() const { return fabric_; }
  std::int32_t devices() const { return nodes_ * node_.devices; }
  std::int32_t node_of(Rank device) const { return to_int(device) / node_.devices; }
  std::int32_t local_of(Rank device) const { return to_int(device) % node_.devices; }
  std::int32_t classes() const { return classes_; }
  // All rules treat the devices of a class the same.
  std::int32_t class_of(Rank device) const {
    return node_.class_of.empty() ? 0 : node_.class_of[local_of(device)];
  }

  // Numbering: node by node, first its shared resources, then for each device the out and in of its
  // ports; the fabric is last.
  std::int32_t resource_count() const;
  // "node0.gpu3.nvlink.out" (gpu3 counts within the node), "node0.staging0", "spine".
  std::string resource_name(ResourceId id) const;
  // The hop that crosses this resource; a node's shared resource is given as a source's.
  Hop hop_of(ResourceId id) const;
  // The name shared by all resources that a hop can refer to: "nvlink.out", "staging0", "spine".
  std::string hop_name(const Hop& hop) const;
  std::int64_t resource_bytes_per_s(ResourceId id) const;

  // The rule and the route between two different devices, in O(1) and O(hops).
  const RouteRule& rule(Rank source, Rank destination) const {
    if (source == destination || !has(source) || !has(destination)) no_route(source, destination);
    const Where &from = where_[to_int(source)], &to = where_[to_int(destination)];
    if (from.node != to.node) return node_.rules[node_.rule_between];
    return node_.rules[node_.rule_within[from.device_class * classes_ + to.device_class]];
  }
  Route route(Rank source, Rank destination) const;
  ResourceId resource(const Hop& hop, Rank source, Rank destination) const {
    const Where &from = where_[to_int(source)], &to = where_[to_int(destination)];
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
        return ResourceId{from.first_port + 2 * hop.index};
      case Hop::Kind::DestinationIn:
        return ResourceId{to.first_port + 2 * hop.index + 1};
      case Hop::Kind::SourceNodeShared:
        return ResourceId{from.node * per_node_ + hop.index};
      case Hop::Kind::DestinationNodeShared:
        return ResourceId{to.node * per_node_ + hop.index};
      case Hop::Kind::Fabric:
        break;
    }
    return ResourceId{nodes_ * per_node_ + hop.index};
  }

  // The nodes (if there are several), then each node's groups. Memory: one number per device and
  // level of groups.
  std::vector<NamedGroup> groups() const;

  // Identity of the whole content, including the name.
  const Digest& fingerprint() const { return fingerprint_; }

 private:
  bool has(Rank device) const { return to_int(device) >= 0 && to_int(device) < devices(); }
  [[noreturn]] void no_route(Rank source, Rank destination) const;

  std::string name_;
  NodeTemplate node_;
  IndexVector<std::int32_t, SharedResource> fabric_;
  std::int32_t nodes_, classes_ = 1, per_node_ = 0;  // per_node_: number of resources
  // By device: precomputed, because it is needed for every transfer.
  struct Where {
    std::int32_t node, device_class, first_port;  // first_port: number of its first `out`
  };
  IndexVector<std::int32_t, Where> where_;
  Digest fingerprint_;
};

}  // namespace reshard
