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

// Look-up keys: a tensor's meta and placements as words.

using SpecKey = std::vector<std::uint64_t>;
struct SpecKeyHash {
  std::size_t operator()(const SpecKey& key) const;
};

// A null `tensor` means absent.
void add_tensor(const TensorSpec* tensor, SpecKey& key);
void add_placements(const OpPlacements& placements, SpecKey& key);

// Decisions made earlier, by what they depend on: the operator, the mesh, the shape, dtype and
// placements of every tensor, and only those attributes that the operator's rule reads. So a scalar
// that changes from step to step does not cause misses.

struct DecisionCacheStatistics {
  std::int64_t hits = 0, misses = 0, entries = 0, capacity = 0, evictions = 0;
};

class DecisionCache {
 public:
  static constexpr std::int64_t kDefaultCapacity = 4096;

  // Keeps at most `capacity` decisions and drops the least recently used; 0: keeps none.
  explicit DecisionCache(std::int64_t capacity = kDefaultCapacity);

  // The decision for the call, made by `decide` if it is not cached. `mesh` identifies the mesh.
  // The reference is valid until the next call.
  template <class Decide>
  const Decision& of(const OpCall& call, std::uint64_t mesh, Decide decide) {
    write_key(call, mesh);
    if (const Decision* known = find()) return *known;
    return keep(decide());
  }
  // Whether the last decision was cached.
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
  Decision last_;  // used if nothing is kept
};

}  // namespace reshard
