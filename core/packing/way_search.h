// SPDX-License-Identifier: BSD-3-Clause
// The cheapest ways from a set of ranks to all others, at the prices of the moment, over ranks that
// pass on what they receive.
#pragma once

#include <cstdint>
#include <vector>

#include "core/packing/loads.h"
#include "core/packing/rank_routes.h"

namespace reshard {

// From the set outwards, or from everywhere into it.
enum class Direction : std::uint8_t { Outwards, Inwards };

class WaySearch {
 public:
  explicit WaySearch(const RankRoutes& routes);

  // A hop over a route of the topology's longest latency costs this in addition to its resource
  // classes, shorter ones in proportion.
  void set_latency_price(Price price);

  // Forgets everything.
  void clear();
  // A rank of the set, which costs `start`.
  void add(Slot slot, Price start);
  // Prices have changed or ranks came to the set: finds the ways anew.
  void run(const Loads& loads, Direction direction);

  Price cost(Slot slot) const { return costs_[to_index(slot)]; }
  // The rank before it on its way from the set (behind it on the way to the set); -1 in the set.
  Slot before(Slot slot) const { return before_[to_index(slot)]; }
  Price latency_price(std::int32_t trunk) const { return latency_[to_index(trunk)]; }

 private:
  // The cheapest way onto a trunk, and the cheapest from another node.
  struct Label {
    Price cost = kUnreached, other_cost = kUnreached;
    Slot slot = -1, other_slot = -1;
  };
  void offer(std::int32_t trunk, Slot slot, Price cost);
  void leave(std::int32_t trunk, const Loads& loads, Direction direction);

  const RankRoutes& routes_;
  std::int64_t longest_ps_ = 1;
  std::vector<Price> latency_;  // by trunk
  std::vector<Price> start_;    // by slot; kUnreached: not of the set
  std::vector<Slot> set_;
  std::vector<Price> costs_;           // by slot
  std::vector<Slot> before_;           // by slot
  std::vector<Label> labels_;          // by trunk
  std::vector<std::int32_t> touched_;  // trunks with a better label
  std::vector<bool> is_touched_;
  std::vector<Slot> fresh_, next_;  // ranks with a better cost
  std::vector<bool> is_next_;
};

}  // namespace reshard
