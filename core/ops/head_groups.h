// SPDX-License-Identifier: BSD-3-Clause
// Heads of keys and values that query heads share in groups, on ranks that have some of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/layout/layout.h"
#include "core/ops/call.h"

namespace reshard {

// Of queries, keys or values, [batches ..., heads, length, width].
inline int heads_dim(const Shape& shape) { return shape.size() - 3; }

// Some of the KV heads that a rank has, counted among these.
struct KeyHeads {
  std::int64_t first = 0, count = 0;
  friend bool operator==(const KeyHeads&, const KeyHeads&) = default;
};

// The KV heads that a rank's query heads ask for where `group` query heads of the whole tensor
// share one: an operator that is given these alone pairs every query head with its own. Nothing
// where no heads do that: one is on another rank, they lie apart, or a group is torn.
std::optional<KeyHeads> heads_asked_for(Runs query_heads, Runs key_heads, std::int64_t group);

struct PlacedHeads {
  const Shape& shape;
  const OpPlacements& placements;
};

// Whether each rank's query heads are whole groups of the KV heads that it has; where these are
// whole, of those among them that it needs, and only if they could not be cut, too. `sizes`: of the
// mesh's axes.
bool pairs_heads(const PlacedHeads& query, const PlacedHeads& key,
                 std::span<const std::int32_t> sizes);

}  // namespace reshard
