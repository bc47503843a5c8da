// SPDX-License-Identifier: BSD-3-Clause
#include "core/planners/near_bound.h"

#include <fmt/core.h>

#include <utility>

#include "core/planners/each_tensor.h"

namespace reshard {
namespace {

// On more ranks than this the search for trees takes many seconds.
constexpr std::size_t kManyRanks = 256;

bool is_large(const Demand& demand) {
  return demand.tensor_count() > 1 &&
         !too_large_for_each_tensor(to_index(demand.tensor_count()), demand.ranks().size(),
                                    demand.kinds().size())
              .empty();
}

}  // namespace

std::optional<Plan> p2p_near_bound(const Demand& demand, const PlannerInput& input,
                                   std::int64_t bound_ps) {
  if (!input.plan_time || input.memory.any() || !is_large(demand)) return std::nullopt;
  const int part = demand.ranks().size() > kManyRanks ? 100 : 500;
  const std::int64_t enough_ps = bound_ps + bound_ps / part;
  std::optional<Plan> out;
  Explanation why;
  if (input.p2p != nullptr && input.p2p_ps) {
    if (*input.p2p_ps > enough_ps) return std::nullopt;
    out = *input.p2p;
  } else {
    PlannerInput own = input;
    own.explanation = input.explanation != nullptr ? &why : nullptr;
    out = plan_p2p(demand, own);
    if (input.plan_time(*out, *input.topology, enough_ps + 1).time_ps > enough_ps)
      return std::nullopt;
  }
  out->planner = "packed";
  if (input.explanation != nullptr) {
    input.explanation->add(
        fmt::format("packed: p2p is within 1/{} of the bound; no trees looked for", part));
    add_shifted(why, 0, *input.explanation);
  }
  return out;
}

}  // namespace reshard
