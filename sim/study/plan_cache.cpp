// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/plan_cache.h"

namespace reshard {

std::shared_ptr<const Plan> PlanCache::get(
    const PlanKey& key, const std::function<std::shared_ptr<const Plan>()>& make) {
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    ++hits_;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->plan;
  }
  ++misses_;
  std::shared_ptr<const Plan> plan = make();
  if (capacity_ == 0) return plan;
  if (static_cast<std::int64_t>(entries_.size()) >= capacity_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, plan});
  by_key_.emplace(key, entries_.begin());
  return plan;
}

PlanCacheStatistics PlanCache::statistics() const {
  return {hits_, misses_, static_cast<std::int64_t>(entries_.size()), capacity_};
}

void PlanCache::clear() {
  by_key_.clear();
  entries_.clear();
}

}  // namespace reshard
