// SPDX-License-Identifier: BSD-3-Clause
// Least-recently-used cache of proved plans by (request, planner, topology, memory limit).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/base/digest.h"
#include "core/plan/plan.h"

namespace reshard {

struct PlanKey {
  Digest request, topology;
  std::int32_t planner;             // index in planners()
  std::int64_t memory_limit_bytes;  // -1: none
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

struct PlanCacheStatistics {
  std::int64_t hits = 0, misses = 0, size = 0, capacity = 0;
};

class PlanCache {
 public:
  // capacity 0 keeps nothing.
  explicit PlanCache(std::int64_t capacity) : capacity_(capacity) {}

  // The cached plan, or what `make` returns (then kept, the least recently used dropped). `make`
  // may throw; nothing is kept then and the miss counts.
  std::shared_ptr<const Plan> get(const PlanKey& key,
                                  const std::function<std::shared_ptr<const Plan>()>& make);
  PlanCacheStatistics statistics() const;
  void clear();

 private:
  struct Entry {
    PlanKey key;
    std::shared_ptr<const Plan> plan;
  };
  struct Hash {
    std::size_t operator()(const PlanKey& key) const {
      return static_cast<std::size_t>(key.request.low ^ key.topology.high);
    }
  };
  std::int64_t capacity_, hits_ = 0, misses_ = 0;
  std::list<Entry> entries_;  // most recent first
  // Looked up only, never iterated.
  std::unordered_map<PlanKey, std::list<Entry>::iterator, Hash> by_key_;
};

}  // namespace reshard
