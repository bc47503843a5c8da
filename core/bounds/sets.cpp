// SPDX-License-Identifier: BSD-3-Clause
// Builds the sets X of a job on a topology, level by level.
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "core/base/errors.h"
#include "core/bounds/bounds.h"
#include "core/bounds/capacity.h"

namespace reshard {
namespace {

CutLevel rank_level(const Topology& topology, const std::vector<Rank>& ranks) {
  CutLevel level;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    level.member_of.push_back(static_cast<std::int32_t>(i));
    level.names.push_back(fmt::format("rank {}", to_int(ranks[i])));
    level.node.push_back(topology.node_of(ranks[i]));
  }
  return level;
}

// The level with the groups of the nodes' local devices as sets (-1: no group), numbered by first
// rank. An empty name means the whole node.
CutLevel grouped_level(const Topology& topology, const std::vector<Rank>& ranks,
                       const std::vector<std::int32_t>& group_of_local,
                       const std::vector<std::string>& group_names) {
  CutLevel level;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> sets;  // (node, group) -> set
  for (Rank rank : ranks) {
    std::int32_t node = topology.node_of(rank),
                 group = group_of_local[to_index(topology.local_of(rank))];
    if (group < 0) {
      level.member_of.push_back(-1);
      level.covers_job = false;
      continue;
    }
    auto [entry, is_new] =
        sets.try_emplace({node, group}, static_cast<std::int32_t>(level.names.size()));
    if (is_new) {
      const std::string& name = group_names[to_index(group)];
      level.names.push_back(name.empty() ? fmt::format("node{}", node)
                                         : fmt::format("node{}.{}", node, name));
      level.node.push_back(node);
    }
    level.member_of.push_back(entry->second);
  }
  return level;
}

// The node template's groups, each in the first level in which it overlaps no other group.
std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::string>>> group_levels(
    const NodeTemplate& node) {
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::string>>> levels;
  for (const DeviceGroup& group : node.groups) {
    auto is_free = [&](const auto& level) {
      return std::all_of(group.devices.begin(), group.devices.end(),
                         [&](std::int32_t d) { return level.first[to_index(d)] < 0; });
    };
    auto level = std::find_if(levels.begin(), levels.end(), is_free);
    if (level == levels.end())
      level =
          levels.insert(levels.end(), {std::vector<std::int32_t>(to_index(node.devices), -1), {}});
    for (std::int32_t d : group.devices)
      level->first[to_index(d)] = static_cast<std::int32_t>(level->second.size());
    level->second.push_back(group.name);
  }
  return levels;
}

// A set equal to the job, or no set at all, bounds nothing.
bool is_useful(const CutLevel& level) {
  return level.names.size() > 1 || (level.names.size() == 1 && !level.covers_job);
}

}  // namespace

CutSets::CutSets(const Topology& topology, std::vector<Rank> ranks, Switches use)
    : topology_(&topology), use_(use), ranks_(std::move(ranks)) {
  if (!ranks_.empty() && to_int(ranks_.back()) >= topology.devices())
    throw InputError(
        fmt::format("topology {}: expected a device for every rank, found {} devices and rank {}",
                    topology.name(), topology.devices(), to_int(ranks_.back())));
  levels_.push_back(rank_level(topology, ranks_));
  const NodeTemplate& node = topology.node();
  levels_.push_back(grouped_level(
      topology, ranks_, std::vector<std::int32_t>(to_index(node.devices), 0), {std::string()}));
  levels_.back().of_nodes = true;
  for (const auto& [group_of_local, names] : group_levels(node))
    levels_.push_back(grouped_level(topology, ranks_, group_of_local, names));
  levels_.erase(std::remove_if(levels_.begin(), levels_.end(),
                               [](const CutLevel& level) { return !is_useful(level); }),
                levels_.end());

  JobCapacities capacities(topology, ranks_);
  for (CutLevel& level : levels_) {
    level.first_set = passages_.size();
    std::vector<std::vector<Rank>> members(level.names.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (level.member_of[i] >= 0) members[to_index(level.member_of[i])].push_back(ranks_[i]);
    for (std::size_t set = 0; set < members.size(); ++set) {
      auto [into, into_complement] = capacities.into(level.node[set], members[set]);
      passages_.push_back(into);
      passages_.push_back(into_complement);
      level.capacity += into.bytes_per_s;
    }
    if (!level.covers_job) continue;
    level.passages = capacities.of_level(level.member_of, reducing());
    // Resources that the routes of several sets share count once.
    level.capacity = std::min(level.capacity, level.passages.between.bytes_per_s);
  }
}

std::string CutSets::name(std::size_t set) const {
  for (std::size_t l = levels_.size(); l-- > 0;) {
    if (set < levels_[l].first_set) continue;
    std::size_t at = set - levels_[l].first_set;
    return (at % 2 == 0 ? "" : "all but ") + levels_[l].names[at / 2];
  }
  RESHARD_CHECK(false, "no such set");
  return {};
}

}  // namespace reshard
