// SPDX-License-Identifier: BSD-3-Clause
#include "core/ops/head_groups.h"

#include <algorithm>
#include <vector>

#include "core/ops/candidates.h"

namespace reshard {
namespace {

// With more heads than this, shared heads are not examined one by one, and not cut.
constexpr std::int64_t kMostHeads = 1 << 16;

std::vector<std::int64_t> heads_of(Runs runs) {
  std::vector<std::int64_t> out;
  for (const Run& run : runs)
    for (std::int64_t head = run.global_lo; head < run.global_hi(); ++head) out.push_back(head);
  return out;
}

}  // namespace

std::optional<KeyHeads> heads_asked_for(Runs query_heads, Runs key_heads, std::int64_t group) {
  const std::vector<std::int64_t> queries = heads_of(query_heads), keys = heads_of(key_heads);
  if (queries.empty()) return KeyHeads{};
  const std::int64_t first = queries.front() / group, count = queries.back() / group - first + 1;
  const auto at = std::find(keys.begin(), keys.end(), first);
  const auto size = static_cast<std::int64_t>(queries.size());
  if (keys.end() - at < count || size % count != 0) return std::nullopt;
  for (std::int64_t i = 0; i < count; ++i)
    if (at[i] != first + i) return std::nullopt;
  // An operator derives the size of its groups from the numbers of heads that it is given.
  for (std::int64_t i = 0; i < size; ++i)
    if (queries[to_index(i)] / group != first + i / (size / count)) return std::nullopt;
  return KeyHeads{at - keys.begin(), count};
}

bool pairs_heads(const PlacedHeads& query, const PlacedHeads& key,
                 std::span<const std::int32_t> sizes) {
  const int query_dim = heads_dim(query.shape), key_dim = heads_dim(key.shape);
  const std::int64_t heads = query.shape[query_dim], key_heads = key.shape[key_dim];
  const std::vector<int> axes = axes_cutting(query.placements, query_dim);
  if (axes.empty() || heads == key_heads || key_heads == 0) return true;
  OpPlacements matching = key.placements;
  for (int axis : axes) {
    matching[to_index(axis)] = query.placements[to_index(axis)];
    matching[to_index(axis)].dim = static_cast<std::int8_t>(key_dim);
  }
  const bool is_matching = matching == key.placements;
  if (!is_matching && can_lie(key.shape, matching, sizes) &&
      pairs_heads(query, {key.shape, matching}, sizes))
    return false;
  if (heads > kMostHeads) return false;
  const Layout queries = layout_of_dim(heads, query.placements, query_dim, axes, sizes),
               keys = layout_of_dim(key_heads, key.placements, key_dim, axes, sizes);
  for (std::int32_t position = 0; position < queries.mesh().size(); ++position) {
    const Runs own = queries.runs(0, position), among = keys.runs(0, position);
    const std::optional<KeyHeads> asked = heads_asked_for(own, among, heads / key_heads);
    if (!asked || (is_matching && !own.empty() && *asked != KeyHeads{0, size_of(among)}))
      return false;
  }
  return true;
}

}  // namespace reshard
