// SPDX-License-Identifier: BSD-3-Clause
// From demands and capacities to times.
#include "core/bounds/bounds.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard {
namespace {

constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

// ceil(bytes * 10^12 / rate), cut to int64; bytes may be near 2^127.
std::int64_t least_ps(Int128 bytes, Int128 rate) {
  if (bytes == 0) return 0;
  RESHARD_CHECK(rate > 0, "bytes must enter a set that no route leads into");
  // 2^63 ps are 9.2e6 s: beyond that many seconds the result is cut anyway, and below it bytes *
  // 10^12 may still be too large for 128 bits.
  if (bytes / rate > kLongest / kPsPerSecond) return kLongest;
  Int128 seconds = bytes / rate, rest = bytes % rate;
  while (rest > (Int128{1} << 86)) {
    // Halving both rounds the quotient down: the bound stays a bound.
    rest /= 2;
    rate = rate / 2 + 1;
  }
  Int128 ps = seconds * kPsPerSecond + ceil_div(rest * kPsPerSecond, rate);
  return static_cast<std::int64_t>(std::min<Int128>(ps, kLongest));
}

// Least latency of the routes into each rank of the job from its other ranks.
class LatencyInto {
 public:
  explicit LatencyInto(const CutSets& sets)
      : topology_(sets.topology()), ranks_(static_cast<std::int64_t>(sets.ranks().size())) {
    for (Rank rank : sets.ranks()) ++counts_[topology_.node_of(rank)][topology_.class_of(rank)];
    for (const auto& [node, classes] : counts_)
      for (auto [device_class, count] : classes) node_ranks_[node] += count;
  }

  std::int64_t of(Rank rank) {
    std::int32_t node = topology_.node_of(rank), mine = topology_.class_of(rank);
    auto [known, is_new] = known_.try_emplace({node, mine}, kLongest);
    if (!is_new) return known->second;
    const NodeTemplate& shape = topology_.node();
    for (auto [from, count] : counts_[node]) {
      if (from == mine && count == 1) continue;
      std::int32_t rule = shape.rule_within[to_index(from * topology_.classes() + mine)];
      known->second = std::min(known->second, shape.rules[to_index(rule)].latency_ps);
    }
    if (node_ranks_[node] < ranks_)
      known->second = std::min(known->second, shape.rules[to_index(shape.rule_between)].latency_ps);
    return known->second;
  }

 private:
  const Topology& topology_;
  std::int64_t ranks_;
  std::map<std::int32_t, std::map<std::int32_t, std::int64_t>> counts_;  // node -> class -> ranks
  std::map<std::int32_t, std::int64_t> node_ranks_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> known_;
};

std::int64_t volume_bound_ps(const RequestDemand& demand, const CutSets& sets) {
  std::int64_t bound = 0;
  for (std::size_t l = 0; l < sets.levels().size(); ++l) {
    const CutLevel& level = sets.levels()[l];
    if (!level.covers_job) continue;
    bound = std::max(bound, least_ps(demand.receipts_bytes[l], level.capacity));
  }
  return bound;
}

std::int64_t latency_bound_ps(const RequestDemand& demand, const CutSets& sets) {
  std::int64_t bound = 0;
  LatencyInto latency(sets);
  for (std::size_t i = 0; i < sets.ranks().size() && !sets.levels().empty(); ++i)
    if (demand.in_bytes[sets.levels().front().first_set + 2 * i] > 0)
      bound = std::max(bound, latency.of(sets.ranks()[i]));
  return bound;
}

}  // namespace

std::string_view text(LimitedBy limit) {
  switch (limit) {
    case LimitedBy::None:
      return "none";
    case LimitedBy::Cut:
      return "cut";
    case LimitedBy::Volume:
      return "volume";
    case LimitedBy::Latency:
      return "latency";
  }
  RESHARD_CHECK(false, "unknown limit");
  return {};
}

std::int64_t Bound::time_ps() const { return std::max({cut_ps, volume_ps, latency_ps}); }

LimitedBy Bound::limited_by() const {
  std::int64_t time = time_ps();
  if (time == 0) return LimitedBy::None;
  if (time == cut_ps) return LimitedBy::Cut;
  return time == volume_ps ? LimitedBy::Volume : LimitedBy::Latency;
}

std::int64_t cut_bound_ps(const std::vector<Int128>& in_bytes, const CutSets& sets) {
  RESHARD_CHECK(in_bytes.size() == sets.size(), "a demand of other sets");
  std::int64_t bound = 0;
  for (std::size_t set = 0; set < in_bytes.size(); ++set)
    bound = std::max(bound, least_ps(in_bytes[set], sets.capacity_in(set)));
  return bound;
}

Bound bound_of(const RequestDemand& demand, const CutSets& sets) {
  return {cut_bound_ps(demand.in_bytes, sets), volume_bound_ps(demand, sets),
          latency_bound_ps(demand, sets)};
}

Bound bound_of(const Request& request, const Topology& topology) {
  CutSets sets(topology, request.ranks());
  return bound_of(demand_of(request, sets), sets);
}

}  // namespace reshard
