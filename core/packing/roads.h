// SPDX-License-Identifier: BSD-3-Clause
// The ways between a job's ranks as a small graph, and what is carried on them.
//
// All routes of one rule cross the rule's own resources in the middle, those of the source before
// and those of the destination behind. So a route is a way up onto a *crossing* and a way down from
// it: one crossing per pair of classes in every node, one for all routes between nodes. That is a
// graph of size ranks x classes where a table of routes would be ranks x ranks.
//
// Resources that a symmetry maps to each other carry the same and are one *toll*.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/grouped.h"
#include "core/packing/symmetry.h"
#include "core/topology/topology.h"

namespace reshard {

class Roads {
 public:
  // `ranks` by slot, each once, all with a device.
  Roads(const Topology& topology, const std::vector<Rank>& ranks, const Symmetry& symmetry);

  struct Toll {
    std::int64_t bytes_per_s;  // of one resource
    std::int64_t resources;    // that are one toll
    std::string name;          // of what they are: "nic.out"
  };
  // Tolls [first, first + count) of the list.
  struct Range {
    std::uint32_t first, count;
  };
  // Up from a rank to a crossing or down from it to a rank.
  struct Ramp {
    std::int32_t crossing;
    Slot slot;
    Range tolls;
  };
  struct Crossing {
    std::int32_t rule;
    bool between_nodes;
    std::int64_t latency_ps;
    Range tolls;
  };

  std::size_t ranks() const { return node_of_.size(); }
  std::int32_t node_of(Slot slot) const { return node_of_[to_index(slot)]; }
  const std::vector<Toll>& tolls() const { return tolls_; }
  const std::vector<Crossing>& crossings() const { return crossings_; }
  std::span<const std::int32_t> tolls_of(Range range) const {
    return std::span(toll_list_).subspan(range.first, range.count);
  }
  // By rank and by crossing.
  std::span<const Ramp> up_from(Slot slot) const { return up_[slot]; }
  std::span<const Ramp> down_to(Slot slot) const { return down_[slot]; }
  std::span<const Ramp> up_to(std::int32_t crossing) const { return up_at_[crossing]; }
  std::span<const Ramp> down_from(std::int32_t crossing) const { return down_at_[crossing]; }
  // The crossing of the route between two ranks.
  std::int32_t crossing(Slot from, Slot to) const;

 private:
  friend class RoadBuilder;

  std::vector<std::int32_t> node_of_;  // by slot
  std::vector<Toll> tolls_;
  std::vector<std::int32_t> toll_list_;
  std::vector<Crossing> crossings_;
  Grouped<Ramp> up_, down_, up_at_, down_at_;
};

}  // namespace reshard
