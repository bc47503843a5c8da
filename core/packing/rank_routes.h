// SPDX-License-Identifier: BSD-3-Clause
// The routes between a job's ranks as a small graph.
//
// All routes of one rule cross the source's resources first, the rule's own resources in the
// middle, and the destination's last. So a route is an access link up to a *trunk* and one down
// from it: there is one trunk per pair of classes in every node, and one for all routes between
// nodes. This graph has size ranks x classes, where a table of routes would have ranks x ranks.
//
// Resources that a symmetry maps to each other carry equal loads and form one *resource class*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/grouped.h"
#include "core/demand/symmetry.h"
#include "core/topology/topology.h"

namespace reshard {

class RankRoutes {
 public:
  // `ranks` by slot, each once, all with a device.
  RankRoutes(const Topology& topology, const std::vector<Rank>& ranks, const Symmetry& symmetry);

  struct ResourceClass {
    std::int64_t bytes_per_s;  // of one resource
    std::int64_t resources;    // number of resources in the class
    std::string name;          // what they are: "nic.out"
  };
  // Entries [first, first + count) of the list of resource classes. Equal ranges are the same
  // entries, and no two others begin at the same one; those without any begin behind the last.
  struct Range {
    std::uint32_t first, count;
  };
  // Up from a rank to a trunk, or down from a trunk to a rank.
  struct AccessLink {
    std::int32_t trunk;
    Slot slot;
    Range classes;
  };
  struct Trunk {
    std::int32_t rule;
    bool between_nodes;
    std::int64_t latency_ps;
    Range classes;
  };

  std::size_t ranks() const { return node_of_.size(); }
  std::int32_t node_of(Slot slot) const { return node_of_[to_index(slot)]; }
  const std::vector<ResourceClass>& classes() const { return classes_; }
  const std::vector<Trunk>& trunks() const { return trunks_; }
  std::span<const std::int32_t> classes_of(Range range) const {
    return std::span(class_list_).subspan(range.first, range.count);
  }
  std::size_t class_entries() const { return class_list_.size(); }
  // The ranges that a class is in, by their first entries; as often as it is in them.
  std::span<const std::uint32_t> ranges_with(std::int32_t resource_class) const {
    return ranges_with_[resource_class];
  }
  // Access links by rank and by trunk.
  std::span<const AccessLink> up_from(Slot slot) const { return up_[slot]; }
  std::span<const AccessLink> down_to(Slot slot) const { return down_[slot]; }
  std::span<const AccessLink> up_to(std::int32_t trunk) const { return up_at_[trunk]; }
  std::span<const AccessLink> down_from(std::int32_t trunk) const { return down_at_[trunk]; }
  // The trunk of the route between two ranks.
  std::int32_t trunk(Slot from, Slot to) const;
  // Calls visit(resource class) for everything that the route between two ranks crosses.
  template <class Visit>
  void for_each_class(Slot from, Slot to, Visit&& visit) const {
    std::int32_t crossed = trunk(from, to);
    auto all = [&](Range range) {
      for (std::int32_t resource_class : classes_of(range)) visit(resource_class);
    };
    for (const AccessLink& link : up_from(from))
      if (link.trunk == crossed) all(link.classes);
    all(trunks()[to_index(crossed)].classes);
    for (const AccessLink& link : down_to(to))
      if (link.trunk == crossed) all(link.classes);
  }

 private:
  friend class RouteBuilder;

  std::vector<std::int32_t> node_of_;  // by slot
  std::vector<ResourceClass> classes_;
  std::vector<std::int32_t> class_list_;
  Grouped<std::uint32_t> ranges_with_;
  std::vector<Trunk> trunks_;
  std::int32_t between_ = -1;  // the trunk of all routes between nodes
  Grouped<AccessLink> up_, down_, up_at_, down_at_;
};

}  // namespace reshard
