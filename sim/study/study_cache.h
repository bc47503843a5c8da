// SPDX-License-Identifier: BSD-3-Clause
// Least-recently-used cache of studies by (request, planner, topology, memory limit).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>

#include "core/base/digest.h"
#include "sim/study/study.h"

namespace reshard::sim {

struct StudyKey {
  Digest request, topology;
  std::int32_t planner;             // index in planners()
  std::int64_t memory_limit_bytes;  // -1: none
  friend bool operator==(const StudyKey&, const StudyKey&) = default;
};

struct CacheStatistics {
  std::int64_t hits = 0, misses = 0, size = 0, capacity = 0;
};

class StudyCache {
 public:
  // capacity 0 keeps nothing.
  explicit StudyCache(std::int64_t capacity) : capacity_(capacity) {}

  // The cached study, or what `make` returns (then kept, the least recently used dropped). `make`
  // may throw; nothing is kept then and the miss counts.
  std::shared_ptr<Study> get(const StudyKey& key,
                             const std::function<std::shared_ptr<Study>()>& make);
  CacheStatistics statistics() const;
  void clear();

 private:
  struct Entry {
    StudyKey key;
    std::shared_ptr<Study> study;
  };
  struct Hash {
    std::size_t operator()(const StudyKey& key) const {
      return static_cast<std::size_t>(key.request.low ^ key.topology.high);
    }
  };
  std::int64_t capacity_, hits_ = 0, misses_ = 0;
  std::list<Entry> entries_;  // most recent first
  // Looked up only, never iterated.
  std::unordered_map<StudyKey, std::list<Entry>::iterator, Hash> by_key_;
};

}  // namespace reshard::sim
