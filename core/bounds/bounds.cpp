// SPDX-License-Identifier: BSD-3-Clause
// Turns demands and capacities into times.
#include "core/bounds/bounds.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/errors.h"
#include "core/bounds/latency.h"

namespace reshard {
namespace {

std::int64_t volume_bound_ps(const RequestDemand& demand, const CutSets& sets) {
  std::int64_t bound = 0;
  for (std::size_t l = 0; l < sets.levels().size(); ++l) {
    const CutLevel& level = sets.levels()[l];
    if (!level.covers_job) continue;
    Passage into_all{level.capacity, level.passages.between.latency_ps};
    bound = std::max(bound, into_all.least_ps(demand.receipts_bytes[l]));
  }
  return bound;
}

std::int64_t price_bound_ps(const RequestDemand& demand, const CutSets& sets) {
  std::int64_t bound = 0;
  for (std::size_t l = 0; l < demand.prices.size(); ++l)
    if (sets.levels()[l].covers_job)
      bound = std::max(bound, price_bound_ps(demand.prices[l], sets.levels()[l].passages));
  return bound;
}

std::int64_t latency_bound_ps(const RequestDemand& demand, const CutSets& sets) {
  if (sets.levels().empty()) return 0;
  std::int64_t bound = demand.owner_latency_ps;
  JobLatencies latencies(sets.topology(), sets.ranks());
  for (std::size_t i = 0; i < sets.ranks().size(); ++i)
    if (demand.in_bytes[sets.levels().front().first_set + 2 * i] > 0)
      bound = std::max(bound, latencies.into_ps(sets.ranks()[i]));
  return bound;
}

// Both must be demands of the same sets.

}  // namespace

void add(RequestDemand& sum, const RequestDemand& more) {
  auto add_all = [](std::vector<Int128>& to, const std::vector<Int128>& from) {
    std::transform(from.begin(), from.end(), to.begin(), to.begin(), std::plus<>());
  };
  add_all(sum.in_bytes, more.in_bytes);
  add_all(sum.receipts_bytes, more.receipts_bytes);
  for (std::size_t l = 0; l < sum.prices.size(); ++l) add(sum.prices[l], more.prices[l]);
  sum.holder_ps = std::max(sum.holder_ps, more.holder_ps);
  sum.entry_ps = std::max(sum.entry_ps, more.entry_ps);
  sum.joint_ps = std::max(sum.joint_ps, more.joint_ps);
  sum.owner_latency_ps = std::max(sum.owner_latency_ps, more.owner_latency_ps);
}

std::string_view text(LimitedBy limit) {
  switch (limit) {
    case LimitedBy::None:
      return "none";
    case LimitedBy::Cut:
      return "cut";
    case LimitedBy::Volume:
      return "volume";
    case LimitedBy::Price:
      return "price";
    case LimitedBy::Holder:
      return "holder";
    case LimitedBy::Latency:
      return "latency";
    case LimitedBy::Order:
      return "order";
  }
  RESHARD_CHECK(false, "unknown limit");
  return {};
}

std::int64_t Bound::time_ps() const {
  return std::max({cut_ps, volume_ps, price_ps, holder_ps, latency_ps, order_ps});
}

LimitedBy Bound::limited_by() const {
  std::int64_t time = time_ps();
  if (time == 0) return LimitedBy::None;
  if (time == cut_ps) return LimitedBy::Cut;
  if (time == volume_ps) return LimitedBy::Volume;
  if (time == price_ps) return LimitedBy::Price;
  if (time == holder_ps) return LimitedBy::Holder;
  return time == latency_ps ? LimitedBy::Latency : LimitedBy::Order;
}

std::int64_t cut_bound_ps(const std::vector<Int128>& in_bytes, const CutSets& sets) {
  RESHARD_CHECK(in_bytes.size() == sets.size(), "a demand counted over other sets");
  std::int64_t bound = 0;
  for (std::size_t set = 0; set < in_bytes.size(); ++set)
    bound = std::max(bound, sets.passage_into(set).least_ps(in_bytes[set]));
  return bound;
}

Bound bound_of(const RequestDemand& demand, const CutSets& sets) {
  return {std::max(cut_bound_ps(demand.in_bytes, sets), demand.entry_ps),
          volume_bound_ps(demand, sets), std::max(price_bound_ps(demand, sets), demand.joint_ps),
          demand.holder_ps, latency_bound_ps(demand, sets)};
}

Bound bound_of(const Request& request, const Topology& topology, Switches use) {
  return bound_of(std::span(&request, 1), topology, use);
}

Bound bound_of(std::span<const Request> requests, const Topology& topology, Switches use) {
  CutSets sets(topology, ranks_of(requests), use);
  return bound_of(demand_of(requests, sets), sets);
}

}  // namespace reshard
