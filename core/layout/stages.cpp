// SPDX-License-Identifier: BSD-3-Clause
// Stages from an order: tensors that are named alike are one group, which leaves few groups; who is
// before which is then a bit set per group; groups with equal sets are one stage.
#include "core/layout/stages.h"

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/base/sort_once.h"

namespace reshard {
namespace {

// A graph of groups of tensors: `after` and `before` name groups, ascending.
struct Group {
  std::vector<TensorId> tensors;
  std::vector<std::int32_t> after, before;
};
using Groups = std::vector<Group>;

void add_before(Groups& groups) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::int32_t other : groups[g].after)
      groups[to_index(other)].before.push_back(static_cast<std::int32_t>(g));
}

// Merges the groups with equal keys, those of the least first tensor first.
template <class Key>
Groups merged(const Groups& groups, const std::vector<Key>& keys) {
  std::map<Key, std::int32_t> known;
  std::vector<std::int32_t> now;
  Groups out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto [at, is_new] = known.try_emplace(keys[g], static_cast<std::int32_t>(out.size()));
    if (is_new) out.emplace_back();
    now.push_back(at->second);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Group& into = out[to_index(now[g])];
    into.tensors.insert(into.tensors.end(), groups[g].tensors.begin(), groups[g].tensors.end());
    for (std::int32_t other : groups[g].after) into.after.push_back(now[to_index(other)]);
  }
  for (Group& group : out) {
    sort_once(group.tensors);
    sort_once(group.after);
  }
  add_before(out);
  return out;
}

// A group per tensor.
Groups single(const TensorOrder& order) {
  Groups out(order.size());
  for (std::size_t t = 0; t < order.size(); ++t) {
    out[t].tensors = {static_cast<TensorId>(t)};
    for (TensorId other : order[t]) out[t].after.push_back(static_cast<std::int32_t>(other));
    sort_once(out[t].after);
  }
  add_before(out);
  return out;
}

// The groups, each after those before it; of several that could be next, that of the least tensor.
std::vector<std::int32_t> in_turn(const Groups& groups) {
  auto later = [&](std::int32_t a, std::int32_t b) {
    return groups[to_index(a)].tensors.front() > groups[to_index(b)].tensors.front();
  };
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, decltype(later)> free(later);
  std::vector<std::size_t> waits;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    waits.push_back(groups[g].after.size());
    if (waits[g] == 0) free.push(static_cast<std::int32_t>(g));
  }
  std::vector<std::int32_t> out;
  while (!free.empty()) {
    out.push_back(free.top());
    free.pop();
    for (std::int32_t next : groups[to_index(out.back())].before)
      if (--waits[to_index(next)] == 0) free.push(next);
  }
  RESHARD_CHECK(out.size() == groups.size(), "tensors that come after each other");
  return out;
}

// Bit sets over the groups.
using Bits = std::vector<std::uint64_t>;
bool has(const Bits& bits, std::int32_t at) {
  return (bits[to_index(at / 64)] >> (at % 64) & 1) != 0;
}
void add(Bits& to, const Bits& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
}
void add(Bits& to, std::int32_t at) { to[to_index(at / 64)] |= std::uint64_t{1} << (at % 64); }

// By group, everything that it reaches through `edges` of groups that come earlier in `turn`.
template <class Edges>
std::vector<Bits> reached(const Groups& groups, const std::vector<std::int32_t>& turn,
                          Edges&& edges) {
  std::vector<Bits> out(groups.size(), Bits((groups.size() + 63) / 64, 0));
  for (std::int32_t g : turn)
    for (std::int32_t other : edges(groups[to_index(g)])) {
      add(out[to_index(g)], out[to_index(other)]);
      add(out[to_index(g)], other);
    }
  return out;
}

std::vector<Bits> all_before(const Groups& groups, const std::vector<std::int32_t>& turn) {
  return reached(groups, turn, [](const Group& group) { return group.after; });
}

Groups merged_twins(const Groups& groups) {
  std::vector<std::int32_t> turn = in_turn(groups);
  std::vector<Bits> before = all_before(groups, turn);
  std::reverse(turn.begin(), turn.end());
  std::vector<Bits> behind = reached(groups, turn, [](const Group& group) { return group.before; });
  std::vector<std::pair<Bits, Bits>> keys;
  for (std::size_t g = 0; g < groups.size(); ++g)
    keys.emplace_back(std::move(before[g]), std::move(behind[g]));
  return merged(groups, keys);
}

// The groups that a group names, without those that also come before another one of them.
std::vector<std::int32_t> direct(const Group& group, const std::vector<Bits>& before) {
  Bits through(before.empty() ? 0 : before.front().size(), 0);
  for (std::int32_t other : group.after) add(through, before[to_index(other)]);
  std::vector<std::int32_t> out;
  for (std::int32_t other : group.after)
    if (!has(through, other)) out.push_back(other);
  return out;
}

}  // namespace

namespace {

Stages stages_of_groups(const Groups& given) {
  if (std::all_of(given.begin(), given.end(), [](const Group& each) { return each.after.empty(); }))
    return {};
  using Names = std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>;
  std::vector<Names> names;
  for (const Group& group : given) names.emplace_back(group.after, group.before);
  Groups groups = merged(given, names);
  if (groups.size() > kMaxStages)
    throw InputError(
        fmt::format("after: expected tensors in at most {} stages, found {}; tensors that come "
                    "after the same ones and before the same ones are one stage",
                    kMaxStages, groups.size()));
  groups = merged_twins(groups);
  std::vector<std::int32_t> turn = in_turn(groups);
  std::vector<Bits> before = all_before(groups, turn);
  std::vector<std::int32_t> number(groups.size());
  Stages out;
  for (std::int32_t g : turn) {
    number[to_index(g)] = static_cast<std::int32_t>(out.size());
    Stage stage{groups[to_index(g)].tensors, {}};
    for (std::int32_t other : direct(groups[to_index(g)], before))
      stage.after.push_back(number[to_index(other)]);
    std::sort(stage.after.begin(), stage.after.end());
    out.push_back(std::move(stage));
  }
  return out;
}

}  // namespace

Stages stages_of(const TensorOrder& order) { return stages_of_groups(single(order)); }

Stages stages_of(const Stages& groups) {
  Groups out;
  for (const Stage& group : groups) {
    out.push_back({group.tensors, group.after, {}});
    sort_once(out.back().tensors);
    sort_once(out.back().after);
  }
  add_before(out);
  return stages_of_groups(out);
}

void add_groups(Stages& to, const Stages& groups, std::size_t tensors, std::size_t first) {
  auto base = static_cast<std::int32_t>(to.size());
  if (groups.empty()) {
    Stage& all = to.emplace_back();
    for (std::size_t t = 0; t < tensors; ++t) all.tensors.push_back(id_of<TensorId>(first + t));
    return;
  }
  for (Stage group : groups) {
    for (TensorId& tensor : group.tensors) tensor = id_of<TensorId>(first + to_index(tensor));
    for (std::int32_t& before : group.after) before += base;
    to.push_back(std::move(group));
  }
}

IndexVector<TensorId, std::int32_t> stage_of_tensors(const Stages& stages, std::size_t tensors) {
  IndexVector<TensorId, std::int32_t> out(tensors, 0);
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (TensorId tensor : stages[s].tensors) out[tensor] = static_cast<std::int32_t>(s);
  return out;
}

Digest fingerprint_of(std::span<const Request> requests, const Stages& stages) {
  if (stages.empty()) return fingerprint_of(requests);
  Hasher hasher;
  hasher.add(fingerprint_of(requests).hex());
  for (const Stage& stage : stages) {
    hasher.add(static_cast<std::int64_t>(stage.tensors.size()));
    for (TensorId tensor : stage.tensors) hasher.add(static_cast<std::int64_t>(tensor));
    hasher.add(static_cast<std::int64_t>(stage.after.size()));
    for (std::int32_t before : stage.after) hasher.add(std::int64_t{before});
  }
  return hasher.digest();
}

std::string text_of(std::span<const Request> requests, const Stages& stages) {
  std::string out = text_of(requests);
  return stages.empty() ? out : fmt::format("{}, in {} stages", out, stages.size());
}

}  // namespace reshard
