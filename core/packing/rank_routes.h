// SPDX-License-Identifier: BSD-3-Clause
// The ways between a job's ranks as a small graph, and what is carried on them.
//
// All routes of one rule cross the rule's own resources in the middle, those of the source before
// and those of the destination behind. So a route is a way up onto a *trunk* and a way down from
// it: one trunk per pair of classes in every node, one for all routes between nodes. That is a
// graph of size ranks x classes where a table of routes would be ranks x ranks.
//
// Resources that a symmetry maps to each other carry the same and are one *resource class*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/grouped.h"
#include "core/packing/symmetry.h"
#include "core/topology/topology.h"

namespace reshard {

class RankRoutes {
 public:
  // `ranks` by slot, each once, all with a device.
  RankRoutes(const Topology& topology, const std::vector<Rank>& ranks, const Symmetry& symmetry);

  struct ResourceClass {
    std::int64_t bytes_per_s;  // of one resource
    std::int64_t resources;    // that are one resource class
    std::string name;          // of what they are: "nic.out"
  };
  // ResourceClasses [first, first + count) of the list.
  struct Range {
    std::uint32_t first, count;
  };
  // Up from a rank to a trunk or down from it to a rank.
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
  // By rank and by trunk.
  std::span<const AccessLink> up_from(Slot slot) const { return up_[slot]; }
  std::span<const AccessLink> down_to(Slot slot) const { return down_[slot]; }
  std::span<const AccessLink> up_to(std::int32_t trunk) const { return up_at_[trunk]; }
  std::span<const AccessLink> down_from(std::int32_t trunk) const { return down_at_[trunk]; }
  // The trunk of the route between two ranks.
  std::int32_t trunk(Slot from, Slot to) const;

 private:
  friend class RouteBuilder;

  std::vector<std::int32_t> node_of_;  // by slot
  std::vector<ResourceClass> classes_;
  std::vector<std::int32_t> class_list_;
  std::vector<Trunk> trunks_;
  Grouped<AccessLink> up_, down_, up_at_, down_at_;
};

}  // namespace reshard
