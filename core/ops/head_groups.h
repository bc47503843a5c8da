// SPDX-License-Identifier: BSD-3-Clause
// Heads of keys and values that groups of query heads share, and which of them a rank needs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/layout/layout.h"
#include "core/ops/call.h"

namespace reshard {

// The heads dim of queries, keys or values, [batches ..., heads, length, width].
inline int heads_dim(const Shape& shape) { return shape.size() - 3; }

// A range of the KV heads that a rank has, counted among these.
struct KeyHeads {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const KeyHeads&, const KeyHeads&) = default;
};

// The KV heads that a rank's query heads need where `group` query heads of the whole tensor share
// one: an operator that is given only these pairs every query head with the right one. nullopt if
// no range does that: a head is on another rank, the heads are not consecutive, or a group is
// split.
std::optional<KeyHeads> heads_asked_for(Runs query_heads, Runs key_heads, std::int64_t group);

struct PlacedHeads {
  const Shape& shape;
  const OpPlacements& placements;
};

// Whether each rank can pair its query heads with KV heads that it has. If the KV heads are cut
// like the query heads, each rank must need exactly those that it has; otherwise some of them, and
// only if cutting them like the query heads would not work. `sizes`: of the mesh's axes.
bool pairs_heads(const PlacedHeads& query, const PlacedHeads& key,
                 std::span<const std::int32_t> sizes);

}  // namespace reshard
