// SPDX-License-Identifier: BSD-3-Clause
// The load of every resource class, and the price of carrying more.
//
// A resource class's load is its busy time relative to the target time: 2^30 is the target. Its
// price, per byte, grows by a factor of e for every 1/20 of the target; it is high where much is
// carried and where little fits. Sending everything over the cheapest paths at such prices comes
// near the least possible maximum load (Garg and Koenemann, "Faster and simpler algorithms for
// multicommodity flow", SIAM J. Comput. 37, 2007). Integers throughout.
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

  // Everything has `symmetries` copies, spread evenly over the resources of a resource class.
  // `target_ps` > 0: the target time.
  Loads(const RankRoutes& routes, std::int64_t symmetries, std::int64_t target_ps);

  Price price(std::int32_t resource_class) const { return prices_[to_index(resource_class)]; }
  // The sum of the prices of its classes.
  Price price(RankRoutes::Range range) const { return sums_[range.first]; }
  // The highest price of any resource class.
  Price top() const;
  // The highest that one has when it is busy for the target time.
  Price full() const;

  // Adds or removes `bytes` over one resource of the class and equally over all its others.
  void carry(std::int32_t resource_class, std::int64_t bytes) {
    change(resource_class, amount(resource_class, bytes));
  }
  void release(std::int32_t resource_class, std::int64_t bytes) {
    change(resource_class, -amount(resource_class, bytes));
  }

  // The busy time of the busiest resource class.
  std::int64_t time_ps() const;
  // The load of a resource class that is busy for so long.
  std::int64_t load_at(std::int64_t time_ps) const;
  std::int32_t busiest() const;
  std::int64_t load(std::int32_t resource_class) const { return loads_[to_index(resource_class)]; }

 private:
  Price price_at(std::int32_t resource_class, std::int64_t load) const;
  void change(std::int32_t resource_class, std::int64_t amount);
  std::int64_t amount(std::int32_t resource_class, std::int64_t bytes) const;

  const RankRoutes& routes_;
  std::int64_t target_ps_;
  std::span<const std::uint64_t> powers_;  // fractional powers of 2
  std::vector<std::uint64_t> per_byte_;    // by resource class: load per byte, times 2^20
  std::vector<Price> base_;  // by resource class: price without load, 256 for the fastest
  std::vector<std::int64_t> loads_;
  std::vector<Price> prices_;
  std::vector<Price> sums_;  // by the first entry of a range
};

}  // namespace reshard
