// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/limit_log.h"

#include <algorithm>

namespace reshard::sim {

void LimitLog::begun(std::int32_t flow) {
  if (to_index(flow) >= flows_.size()) flows_.resize(to_index(flow) + 1);
  flows_[flow] = {transfers_++};
}

void LimitLog::held(std::int32_t flow, std::optional<ResourceId> by) {
  flows_[flow].held_by = by;
  if (by) newly_held_.push_back(flow);
}

void LimitLog::solved(std::int64_t now_ps, const FairShare& shares,
                      const FairShare::Changes& changes) {
  for (std::int32_t flow : newly_held_)
    if (flows_[flow].held_by) set(flow, flows_[flow].held_by, now_ps);
  newly_held_.clear();
  for (std::int32_t flow : changes.relimited) set(flow, shares.limit(flow), now_ps);
}

void LimitLog::set(std::int32_t flow, std::optional<ResourceId> limit, std::int64_t now_ps) {
  std::int32_t now = limit ? static_cast<std::int32_t>(to_index(*limit)) : kCap;
  if (flows_[flow].limit == now) return;
  flows_[flow].limit = now;
  full_ = full_ || changes_.size() == kMaxChanges;
  if (!full_) changes_.push_back({flows_[flow].transfer, now, now_ps});
}

std::vector<std::vector<LimitLog::Limit>> LimitLog::limits_of(std::span<const Wait> chain) const {
  std::vector<std::vector<Limit>> out(chain.size());
  std::vector<std::pair<std::int32_t, std::size_t>> places;  // by transfer
  for (std::size_t i = 0; i < chain.size(); ++i)
    if (chain[i].transfer >= 0) places.emplace_back(chain[i].transfer, i);
  std::sort(places.begin(), places.end());
  for (const Change& change : changes_) {
    auto at =
        std::lower_bound(places.begin(), places.end(), std::pair(change.transfer, std::size_t{0}));
    if (at == places.end() || at->first != change.transfer) continue;
    std::optional<ResourceId> resource;
    if (change.limit != kCap) resource = id_of<ResourceId>(to_index(change.limit));
    out[at->second].push_back({change.since_ps, resource});
  }
  return out;
}

}  // namespace reshard::sim
