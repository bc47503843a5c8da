// SPDX-License-Identifier: BSD-3-Clause
// The sets X of a job on a topology and cap_in(X).
//
// Every X is a set A of job ranks of one node, or the complement of such a set within the job. With B the job's other ranks of A's node and R its ranks elsewhere, the routes into A
// come from B (by class of device) and from R (by the one rule between nodes), those into the complement from A to B and to R. So only the number of ranks per class matters:
// a resource is named by what it belongs to (all devices of one class in A, node memory, ...) and counted with the number of such places, and a set costs the pairs of classes
// in its node, never the pairs of ranks.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/planners/bounds.h"

namespace reshard {
namespace {

// Ranks of one node by class of device, ascending, only classes that occur.
using ClassCounts = std::vector<std::pair<std::int32_t, std::int64_t>>;

// One side of A's node.
enum class Region : std::uint8_t { Inside, Beside, Elsewhere };  // A, B, R

// The job seen from one set A.
struct Surroundings {
  ClassCounts inside, beside;
  std::int64_t ranks_elsewhere = 0, nodes_elsewhere = 0;

  std::int64_t ranks(const ClassCounts& counts) const {
    std::int64_t sum = 0;
    for (auto [device_class, count] : counts) sum += count;
    return sum;
  }
};

// Distinct resources at one end of a bundle of routes, added up.
class CapacitySum {
 public:
  explicit CapacitySum(const Topology& topology) : topology_(topology) {}

  // `source` and `destination`: region, class there (-1: any) and number of ranks and nodes.
  struct End {
    Region region;
    std::int32_t device_class;
    std::int64_t ranks, nodes;
  };
  void add(const Hop& hop, const End& source, const End& destination) {
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
        return add_port(hop, source, port(hop).out_bytes_per_s);
      case Hop::Kind::DestinationIn:
        return add_port(hop, destination, port(hop).in_bytes_per_s);
      case Hop::Kind::SourceNodeShared:
        return add_shared(hop, source);
      case Hop::Kind::DestinationNodeShared:
        return add_shared(hop, destination);
      case Hop::Kind::Fabric:
        return add_once({2, hop.index, 0, 0, 0}, topology_.fabric()[static_cast<std::size_t>(hop.index)].bytes_per_s, 1);
    }
  }

  Int128 sum() const { return sum_; }

 private:
  using Key = std::tuple<int, std::int32_t, int, int, std::int32_t>;  // kind, index, out or in, region, class

  const Port& port(const Hop& hop) const { return topology_.node().ports[static_cast<std::size_t>(hop.index)]; }
  void add_port(const Hop& hop, const End& end, std::int64_t rate) {
    add_once({0, hop.index, static_cast<int>(hop.kind), static_cast<int>(end.region), end.device_class}, rate, end.ranks);
  }
  // A and B share their node's resources.
  void add_shared(const Hop& hop, const End& end) {
    add_once({1, hop.index, 0, end.region == Region::Elsewhere ? 1 : 0, 0}, topology_.node().shared[static_cast<std::size_t>(hop.index)].bytes_per_s,
             end.nodes);
  }
  void add_once(const Key& key, std::int64_t rate, std::int64_t places) {
    if (seen_.insert(key).second) sum_ += Int128{rate} * places;
  }

  const Topology& topology_;
  std::set<Key> seen_;
  Int128 sum_ = 0;
};

// Adds up the first and the last resources of a set's incoming routes, bundle by bundle.
struct Entrance {
  CapacitySum first, last;
  explicit Entrance(const Topology& topology) : first(topology), last(topology) {}

  void add(const RouteRule& rule, const CapacitySum::End& source, const CapacitySum::End& destination) {
    first.add(rule.hops.front(), source, destination);
    last.add(rule.hops.back(), source, destination);
  }
  Int128 capacity() const { return std::min(first.sum(), last.sum()); }
};

Int128 capacity_into(const Topology& topology, const Surroundings& around, bool complement) {
  Entrance entrance(topology);
  const NodeTemplate& node = topology.node();
  const ClassCounts& sources = complement ? around.inside : around.beside;
  const ClassCounts& destinations = complement ? around.beside : around.inside;
  Region source_region = complement ? Region::Inside : Region::Beside, destination_region = complement ? Region::Beside : Region::Inside;
  for (auto [from, from_count] : sources)
    for (auto [to, to_count] : destinations) {
      std::int32_t rule = node.rule_within[static_cast<std::size_t>(from * topology.classes() + to)];
      entrance.add(node.rules[static_cast<std::size_t>(rule)], {source_region, from, from_count, 1}, {destination_region, to, to_count, 1});
    }
  if (around.ranks_elsewhere > 0) {
    const RouteRule& rule = node.rules[static_cast<std::size_t>(node.rule_between)];
    CapacitySum::End elsewhere{Region::Elsewhere, -1, around.ranks_elsewhere, around.nodes_elsewhere};
    for (auto [device_class, count] : around.inside) {
      CapacitySum::End inside{Region::Inside, device_class, count, 1};
      entrance.add(rule, complement ? inside : elsewhere, complement ? elsewhere : inside);
    }
  }
  return entrance.capacity();
}

ClassCounts classes_of(const Topology& topology, const std::vector<Rank>& ranks) {
  std::map<std::int32_t, std::int64_t> counts;
  for (Rank rank : ranks) ++counts[topology.class_of(rank)];
  return {counts.begin(), counts.end()};
}

// Per class: how many of `all` are not in `part`.
ClassCounts without(const ClassCounts& all, const ClassCounts& part) {
  ClassCounts out;
  std::size_t i = 0;
  for (auto [device_class, count] : all) {
    std::int64_t taken = i < part.size() && part[i].first == device_class ? part[i++].second : 0;
    if (count > taken) out.push_back({device_class, count - taken});
  }
  return out;
}

// Ranks with the same class in nodes that hold the same classes have the same surroundings; capacities are kept per such situation.
class Capacities {
 public:
  Capacities(const Topology& topology, const std::vector<Rank>& ranks) : topology_(topology), job_size_(static_cast<std::int64_t>(ranks.size())) {
    for (std::size_t i = 0; i < ranks.size();) {
      std::size_t j = i;
      while (j < ranks.size() && topology.node_of(ranks[j]) == topology.node_of(ranks[i])) ++j;
      by_node_.emplace(topology.node_of(ranks[i]),
                       classes_of(topology, {ranks.begin() + static_cast<std::ptrdiff_t>(i), ranks.begin() + static_cast<std::ptrdiff_t>(j)}));
      i = j;
    }
  }

  // Of `members`, all on `node`, and of their complement.
  std::pair<Int128, Int128> of(std::int32_t node, const std::vector<Rank>& members) {
    const ClassCounts& here = by_node_.at(node);
    Surroundings around;
    around.inside = classes_of(topology_, members);
    auto [entry, is_new] = known_.try_emplace({here, around.inside});
    if (is_new) {
      around.beside = without(here, around.inside);
      around.ranks_elsewhere = job_size_ - around.ranks(here);
      around.nodes_elsewhere = static_cast<std::int64_t>(by_node_.size()) - 1;
      entry->second = {capacity_into(topology_, around, false), capacity_into(topology_, around, true)};
    }
    return entry->second;
  }

 private:
  const Topology& topology_;
  std::int64_t job_size_;
  std::map<std::int32_t, ClassCounts> by_node_;
  std::map<std::pair<ClassCounts, ClassCounts>, std::pair<Int128, Int128>> known_;
};

// ---- levels ----

CutLevel rank_level(const Topology& topology, const std::vector<Rank>& ranks) {
  CutLevel level;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    level.member_of.push_back(static_cast<std::int32_t>(i));
    level.names.push_back(fmt::format("rank {}", to_int(ranks[i])));
    level.node.push_back(topology.node_of(ranks[i]));
  }
  return level;
}

// The level whose sets are given by the local devices' group (-1: none), numbered by first rank; -1 stands for "the whole node" in `names`.
CutLevel grouped_level(const Topology& topology, const std::vector<Rank>& ranks, const std::vector<std::int32_t>& group_of_local,
                       const std::vector<std::string>& group_names) {
  CutLevel level;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> sets;  // (node, group) -> set
  for (Rank rank : ranks) {
    std::int32_t node = topology.node_of(rank), group = group_of_local[static_cast<std::size_t>(topology.local_of(rank))];
    if (group < 0) {
      level.member_of.push_back(-1);
      level.covers_job = false;
      continue;
    }
    auto [entry, is_new] = sets.try_emplace({node, group}, static_cast<std::int32_t>(level.names.size()));
    if (is_new) {
      const std::string& name = group_names[static_cast<std::size_t>(group)];
      level.names.push_back(name.empty() ? fmt::format("node{}", node) : fmt::format("node{}.{}", node, name));
      level.node.push_back(node);
    }
    level.member_of.push_back(entry->second);
  }
  return level;
}

// Groups of the template, each in the first level where it meets no other group.
std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::string>>> group_levels(const NodeTemplate& node) {
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::string>>> levels;
  for (const DeviceGroup& group : node.groups) {
    auto is_free = [&](const auto& level) {
      return std::all_of(group.devices.begin(), group.devices.end(), [&](std::int32_t d) { return level.first[static_cast<std::size_t>(d)] < 0; });
    };
    auto level = std::find_if(levels.begin(), levels.end(), is_free);
    if (level == levels.end()) level = levels.insert(levels.end(), {std::vector<std::int32_t>(static_cast<std::size_t>(node.devices), -1), {}});
    for (std::int32_t d : group.devices) level->first[static_cast<std::size_t>(d)] = static_cast<std::int32_t>(level->second.size());
    level->second.push_back(group.name);
  }
  return levels;
}

// A set equal to the job, and no set at all, say nothing.
bool is_useful(const CutLevel& level) { return level.names.size() > 1 || (level.names.size() == 1 && !level.covers_job); }

}  // namespace

CutSets::CutSets(const Topology& topology, std::vector<Rank> ranks) : topology_(&topology), ranks_(std::move(ranks)) {
  if (!ranks_.empty() && to_int(ranks_.back()) >= topology.devices())
    throw InputError(
        fmt::format("topology {}: expected a device for every rank, found {} devices and rank {}", topology.name(), topology.devices(), to_int(ranks_.back())));
  if (ranks_.size() < 2) return;
  levels_.push_back(rank_level(topology, ranks_));
  const NodeTemplate& node = topology.node();
  levels_.push_back(grouped_level(topology, ranks_, std::vector<std::int32_t>(static_cast<std::size_t>(node.devices), 0), {std::string()}));
  for (const auto& [group_of_local, names] : group_levels(node)) levels_.push_back(grouped_level(topology, ranks_, group_of_local, names));
  levels_.erase(std::remove_if(levels_.begin(), levels_.end(), [](const CutLevel& level) { return !is_useful(level); }), levels_.end());

  Capacities capacities(topology, ranks_);
  for (CutLevel& level : levels_) {
    level.first_set = capacity_in_.size();
    std::vector<std::vector<Rank>> members(level.names.size());
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (level.member_of[i] >= 0) members[static_cast<std::size_t>(level.member_of[i])].push_back(ranks_[i]);
    for (std::size_t set = 0; set < members.size(); ++set) {
      auto [into, into_complement] = capacities.of(level.node[set], members[set]);
      capacity_in_.push_back(into);
      capacity_in_.push_back(into_complement);
    }
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
