// SPDX-License-Identifier: BSD-3-Clause
// The cheapest paths from a set of ranks to all others at current prices, over ranks that forward
// what they receive.
#pragma once

#include <cstdint>
#include <vector>

#include "core/packing/loads.h"
#include "core/packing/rank_routes.h"

namespace reshard {

// From the set to all ranks, or from all ranks to the set.
enum class Direction : std::uint8_t { Outwards, Inwards };

class PathSearch {
 public:
  explicit PathSearch(const RankRoutes& routes);

  // A hop over a route of the topology's longest latency costs this in addition to its resource
  // classes; shorter ones cost in proportion.
  void set_latency_price(Price price);

  // Empties the set.
  void clear();
  // Adds a rank to the set, at a cost of `start`.
  void add(Slot slot, Price start);
  // Finds the paths again, after prices have changed or ranks were added to the set.
  void run(const Loads& loads, Direction direction);

  Price cost(Slot slot) const { return costs_[to_index(slot)]; }
  // The rank before it on its path from the set (or after it on its path to the set); -1 in the
  // set.
  Slot before(Slot slot) const { return before_[to_index(slot)]; }
  Price latency_price(std::int32_t trunk) const { return latency_[to_index(trunk)]; }

 private:
  // The cheapest access to a trunk, and the cheapest from another node than that.
  struct Label {
    Price cost = kUnreached, other_cost = kUnreached;
    Slot slot = -1, other_slot = -1;
  };
  void offer(std::int32_t trunk, Slot slot, Price cost);
  void leave(std::int32_t trunk, const Loads& loads, Direction direction);

  const RankRoutes& routes_;
  std::int64_t longest_ps_ = 1;
  std::vector<Price> latency_;  // by trunk
  std::vector<Price> start_;    // by slot; kUnreached: not in the set
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
