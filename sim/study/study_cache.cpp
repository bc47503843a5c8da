// SPDX-License-Identifier: BSD-3-Clause
#include "sim/study/study_cache.h"

namespace reshard::sim {

std::shared_ptr<Study> StudyCache::get(const StudyKey& key,
                                       const std::function<std::shared_ptr<Study>()>& make) {
  if (auto found = by_key_.find(key); found != by_key_.end()) {
    ++hits_;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->study;
  }
  ++misses_;
  std::shared_ptr<Study> study = make();
  if (capacity_ == 0) return study;
  if (static_cast<std::int64_t>(entries_.size()) >= capacity_) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, study});
  by_key_.emplace(key, entries_.begin());
  return study;
}

CacheStatistics StudyCache::statistics() const {
  return {hits_, misses_, static_cast<std::int64_t>(entries_.size()), capacity_};
}

void StudyCache::clear() {
  by_key_.clear();
  entries_.clear();
}

}  // namespace reshard::sim
