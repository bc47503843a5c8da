// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/packings.h"

#include <algorithm>

#include "core/base/units.h"

namespace reshard {
namespace {

// Enough granules that none keeps the narrowest resource class busy for more than 1/32 of the
// target time; fewer if each has many hops.
//
// Jobs of many tensors have finer ones, as they have many commodities for the same links.
std::int32_t granules_for(const Commodities& commodities, const RankRoutes& routes,
                          std::int64_t symmetries, std::int64_t target_ps) {
  bool many = commodities.demand().tensor_count() > 1;
  const Int128 kMaxGranules = many ? 1 << 13 : 512, kShare = many ? 1024 : 32;
  const Int128 kMaxHops = many ? 1 << 17 : 1 << 18;
  Int128 bytes = 0, narrowest = 0, needers = 0;
  for (const Commodity& commodity : commodities.list()) {
    bytes += commodity.bytes;
    needers += static_cast<std::int64_t>(commodity.needers.size());
  }
  for (const RankRoutes::ResourceClass& resource_class : routes.classes()) {
    Int128 rate = Int128{resource_class.bytes_per_s} * resource_class.resources;
    narrowest = narrowest == 0 ? rate : std::min(narrowest, rate);
  }
  auto count = static_cast<std::int64_t>(commodities.list().size());
  Int128 carried = std::max<Int128>(1, narrowest * target_ps / kPsPerSecond);
  Int128 wanted = bytes / carried * kShare + bytes % carried * kShare / carried,
         most = std::min(kMaxGranules, kMaxHops * count / needers / symmetries);
  return static_cast<std::int32_t>(std::clamp<Int128>(wanted, 1, std::max<Int128>(1, most)));
}

}  // namespace

const Packing& Packings::of(const Aim& aim, bool quickly) {
  for (const auto& [known, packing] : by_aim_)
    if (known == aim) return packing;
  return by_aim_.emplace_back(aim, found(aim, quickly)).second;
}

Packing Packings::found(const Aim& aim, bool quickly) const {
  PackingOptions options;
  options.target_ps = aim.bounds * bound_ps_;
  options.latency_permille = aim.latency_permille;
  options.shallower_rounds = aim.shallower_rounds;
  if (commodities_.demand().tensor_count() > 1) {
    options.together = 2;
    options.latency_of_full = true;
    options.rounds = 4;
    options.fewer_trees_permille = fewer_trees_ ? 970 : 0;
  } else if (quickly) {
    options.rounds = 1;
  }
  options.granules = granules_for(commodities_, routes_, symmetry_.size(), bound_ps_);
  return pack(commodities_, routes_, symmetry_, options);
}

}  // namespace reshard
