// SPDX-License-Identifier: BSD-3-Clause
// A cache of decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "core/ops/call.h"
#include "core/ops/decision.h"

namespace reshard {

// How tensors lie, in words by which it is looked up.

using SpecKey = std::vector<std::uint64_t>;
struct SpecKeyHash {
  std::size_t operator()(const SpecKey& key) const;
};

// Null is none.
void add_tensor(const TensorSpec* tensor, SpecKey& key);
void add_placements(const OpPlacements& placements, SpecKey& key);

// Decisions that were made, by what they depend on: the operator, the mesh, every tensor's shape,
// dtype and placements, and the attributes that the operator's rule reads, no others. A scalar that
// changes from step to step changes nothing.

struct DecisionCacheStatistics {
  std::int64_t hits = 0, misses = 0, entries = 0, capacity = 0, evictions = 0;
};

class DecisionCache {
 public:
  static constexpr std::int64_t kDefaultCapacity = 4096;

  // At most so many decisions, the least recently used are dropped; 0: none is kept.
  explicit DecisionCache(std::int64_t capacity = kDefaultCapacity);

  // The decision on the call, made by `decide` where it is not known. `mesh` tells meshes apart.
  // What is returned is valid until the next call.
  template <class Decide>
  const Decision& of(const OpCall& call, std::uint64_t mesh, Decide decide) {
    write_key(call, mesh);
    if (const Decision* known = find()) return *known;
    return keep(decide());
  }
  // Whether the last one was known.
  bool hit() const { return hit_; }
  DecisionCacheStatistics statistics() const;

 private:
  struct CachedDecision {
    SpecKey key;
    Decision decision;
  };
  using CachedDecisions = std::list<CachedDecision>;  // most recently used first

  void write_key(const OpCall& call, std::uint64_t mesh);
  const Decision* find();
  const Decision& keep(Decision decision);

  std::int64_t capacity_;
  DecisionCacheStatistics statistics_;
  SpecKey key_;
  bool hit_ = false;
  CachedDecisions entries_;
  std::unordered_map<SpecKey, CachedDecisions::iterator, SpecKeyHash> by_key_;
  Decision last_;  // where nothing is kept
};

}  // namespace reshard
