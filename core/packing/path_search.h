// SPDX-License-Identifier: BSD-3-Clause
// The cheapest path from a set of ranks to the nearest wanted rank at current prices, over ranks
// that forward what they receive.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/packing/loads.h"
#include "core/packing/rank_routes.h"

namespace reshard {

// From the set to the wanted ranks, or from those to the set.
enum class Direction : std::uint8_t { Outwards, Inwards };

class PathSearch {
 public:
  explicit PathSearch(const RankRoutes& routes);

  // A hop over a route of the topology's longest latency costs this in addition to its resource
  // classes; shorter ones cost in proportion.
  void set_latency_price(Price price);

  // Empties the set; no rank is wanted.
  void clear();
  // Adds a rank to the set, at a cost of `start`.
  void add(Slot slot, Price start);
  void set_wanted(Slot slot, bool wanted) { is_wanted_[to_index(slot)] = wanted ? 1 : 0; }
  // Finds the path again, after prices, the set or the wanted ranks have changed.
  void run(const Loads& loads, Direction direction);

  // True of the nearest wanted ranks and on their paths; else at least theirs.
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
    std::int32_t node = -1;  // that of `slot`
  };
  void enter(Slot slot, const Loads& loads, Direction direction);
  void offer(std::int32_t trunk, Slot slot, Price cost);
  void leave(std::int32_t trunk, const Loads& loads, Direction direction);

  const RankRoutes& routes_;
  std::int64_t longest_ps_ = 1;
  std::vector<Price> latency_;  // by trunk
  std::vector<Price> start_;    // by slot; kUnreached: not in the set
  std::vector<Slot> set_;
  std::vector<char> is_wanted_;  // by slot
  Price nearest_ = kUnreached;   // the least cost of a wanted rank so far
  std::vector<Price> costs_;     // by slot
  std::vector<Slot> before_;     // by slot
  std::vector<Label> labels_;    // by trunk
  // Each number at most once.
  struct Numbers {
    explicit Numbers(std::size_t most) : list(most), is_in(most, 0) {}
    std::vector<std::int32_t> list;  // the first `count`
    std::size_t count = 0;
    std::vector<char> is_in;
    void add(std::int32_t number) {
      if (std::exchange(is_in[to_index(number)], char{1}) == 0) list[count++] = number;
    }
    void clear() {
      for (std::size_t i = 0; i < count; ++i) is_in[to_index(list[i])] = 0;
      count = 0;
    }
  };
  Numbers touched_;       // trunks with a better label
  Numbers fresh_, next_;  // ranks with a better cost
};

}  // namespace reshard
