// SPDX-License-Identifier: BSD-3-Clause
// The load of every resource class, and the price of carrying more.
//
// A resource class's load is its busy time in units of the time aimed at: 2^30 is that time. Its
// price grows by the factor e for every 1/20 of that, and is per byte: high where much is carried
// and where little fits. Sending everything by the cheapest way under such prices comes near the
// least possible greatest load (Garg and Koenemann, "Faster and simpler algorithms for multicommodity
// flow", SIAM J. Comput. 37, 2007). Integers throughout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/packing/rank_routes.h"

namespace reshard {

using Price = std::uint64_t;
inline constexpr Price kUnreached = ~Price{0};

class Loads {
 public:
  static constexpr std::int64_t kFull = std::int64_t{1} << 30;

  // `symmetries` copies of everything, spread evenly over the resources of a resource class.
  // `target_ps` > 0: the time aimed at.
  Loads(const RankRoutes& routes, std::int64_t symmetries, std::int64_t target_ps);

  Price price(std::int32_t resource_class) const { return prices_[to_index(resource_class)]; }
  Price price(RankRoutes::Range range) const {
    Price sum = 0;
    for (std::int32_t resource_class : routes_.classes_of(range)) sum += price(resource_class);
    return sum;
  }
  // The highest of all.
  Price top() const;

  // `bytes` more, or less, over one resource of the resource class, and over all others like it.
  void carry(std::int32_t resource_class, std::int64_t bytes) {
    change(resource_class, amount(resource_class, bytes));
  }
  void release(std::int32_t resource_class, std::int64_t bytes) {
    change(resource_class, -amount(resource_class, bytes));
  }

  // The time under way of the resource class that has most.
  std::int64_t time_ps() const;
  std::int32_t busiest() const;
  std::int64_t load(std::int32_t resource_class) const { return loads_[to_index(resource_class)]; }

 private:
  void change(std::int32_t resource_class, std::int64_t amount);
  std::int64_t amount(std::int32_t resource_class, std::int64_t bytes) const;

  const RankRoutes& routes_;
  std::int64_t target_ps_;
  std::span<const std::uint64_t> powers_;  // of 2, fractional
  std::vector<std::uint64_t> per_byte_;    // by resource class: load of 2^20 bytes, times 2^20
  std::vector<Price> base_;                // by resource class: price without load, times 2^16
  std::vector<std::int64_t> loads_;
  std::vector<Price> prices_;
};

}  // namespace reshard
