// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/capacity.h"

#include <algorithm>
#include <tuple>

#include "core/base/errors.h"

namespace reshard {
namespace {

// One end of a bundle of routes: all ranks of a class on one side of a kind of node.
struct End {
  std::int32_t place;  // which kind of node
  std::int32_t side;   // which of the ranks there
  std::int32_t device_class;
  std::int64_t ranks, nodes;
};

// Collects bundles of routes by rule, and the distinct resources at each of the rule's hops.
class Entrance {
 public:
  explicit Entrance(const Topology& topology) : topology_(topology) {}

  void add(std::int32_t rule, const End& source, const End& destination) {
    const std::vector<Hop>& hops = topology_.node().rules[to_index(rule)].hops;
    std::vector<Resources>& by_hop = by_rule_[rule];
    by_hop.resize(hops.size());
    for (std::size_t i = 0; i < hops.size(); ++i) add_hop(by_hop[i], hops[i], source, destination);
  }

  // The least over the three choices of hops; 0 without routes.
  Int128 capacity() const {
    Resources first, last, narrowest;
    for (const auto& [rule, by_hop] : by_rule_) {
      first.insert(by_hop.front().begin(), by_hop.front().end());
      last.insert(by_hop.back().begin(), by_hop.back().end());
      auto least =
          std::min_element(by_hop.begin(), by_hop.end(),
                           [](const Resources& a, const Resources& b) { return sum(a) < sum(b); });
      narrowest.insert(least->begin(), least->end());
    }
    return std::min({sum(first), sum(last), sum(narrowest)});
  }

 private:
  // Kind, index, place, side, class.
  using Key = std::tuple<Hop::Kind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  using Resources = std::map<Key, Int128>;  // with their capacity

  void add_hop(Resources& to, const Hop& hop, const End& source, const End& destination) const {
    auto index = to_index(hop.index);
    bool at_source = hop.kind == Hop::Kind::SourceOut || hop.kind == Hop::Kind::SourceNodeShared;
    const End& end = at_source ? source : destination;
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
      case Hop::Kind::DestinationIn: {
        const Port& port = topology_.node().ports[index];
        Int128 rate = at_source ? port.out_bytes_per_s : port.in_bytes_per_s;
        to.try_emplace({hop.kind, hop.index, end.place, end.side, end.device_class},
                       rate * end.ranks);
        return;
      }
      case Hop::Kind::SourceNodeShared:
      case Hop::Kind::DestinationNodeShared:
        // One resource by two names, and both sides of a node share it.
        to.try_emplace({Hop::Kind::SourceNodeShared, hop.index, end.place, 0, 0},
                       Int128{topology_.node().shared[index].bytes_per_s} * end.nodes);
        return;
      case Hop::Kind::Fabric:
        to.try_emplace({hop.kind, hop.index, 0, 0, 0}, topology_.fabric()[index].bytes_per_s);
        return;
    }
  }

  static Int128 sum(const Resources& resources) {
    Int128 total = 0;
    for (const auto& [key, capacity] : resources) total += capacity;
    return total;
  }

  const Topology& topology_;
  std::map<std::int32_t, std::vector<Resources>> by_rule_;  // per hop
};

std::int32_t rule_within(const Topology& topology, std::int32_t from, std::int32_t to) {
  return topology.node().rule_within[to_index(from * topology.classes() + to)];
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

constexpr std::int32_t kHere = 0, kElsewhere = 1;  // places
constexpr std::int32_t kInside = 0, kBeside = 1;   // sides

// Into A from B and R, or the other way.
Int128 capacity_around(const Topology& topology, const ClassCounts& inside,
                       const ClassCounts& beside, const End& elsewhere, bool outwards) {
  Entrance entrance(topology);
  auto add = [&](std::int32_t rule, const End& from, const End& to) {
    outwards ? entrance.add(rule, to, from) : entrance.add(rule, from, to);
  };
  for (auto [mine, my_count] : inside) {
    End in{kHere, kInside, mine, my_count, 1};
    for (auto [other, other_count] : beside)
      add(outwards ? rule_within(topology, mine, other) : rule_within(topology, other, mine),
          End{kHere, kBeside, other, other_count, 1}, in);
    if (elsewhere.ranks > 0) add(topology.node().rule_between, elsewhere, in);
  }
  return entrance.capacity();
}

}  // namespace

JobCapacities::JobCapacities(const Topology& topology, std::vector<Rank> ranks)
    : topology_(topology), ranks_(std::move(ranks)) {
  for (std::size_t i = 0; i < ranks_.size();) {
    std::vector<Rank> here;
    std::int32_t node = topology.node_of(ranks_[i]);
    for (; i < ranks_.size() && topology.node_of(ranks_[i]) == node; ++i) here.push_back(ranks_[i]);
    by_node_.emplace(node, classes_of(topology, here));
  }
}

std::pair<Int128, Int128> JobCapacities::into(std::int32_t node, const std::vector<Rank>& members) {
  const ClassCounts& here = by_node_.at(node);
  ClassCounts inside = classes_of(topology_, members);
  auto [entry, is_new] = known_.try_emplace({here, inside});
  if (is_new) {
    ClassCounts beside = without(here, inside);
    auto elsewhere = static_cast<std::int64_t>(ranks_.size());
    for (auto [device_class, count] : here) elsewhere -= count;
    // The one rule between nodes does not ask for the class.
    End far{kElsewhere, 0, -1, elsewhere, static_cast<std::int64_t>(by_node_.size()) - 1};
    entry->second = {capacity_around(topology_, inside, beside, far, false),
                     capacity_around(topology_, inside, beside, far, true)};
  }
  return entry->second;
}

Int128 JobCapacities::between(const std::vector<std::int32_t>& set_of) const {
  // Nodes with the same classes in the same sets, numbered from the node's lowest set, are one
  // kind: per class its ranks and the least and the greatest of their sets.
  struct ClassHere {
    std::int32_t device_class;
    std::int64_t ranks;
    std::int32_t least_set, greatest_set;
    auto operator<=>(const ClassHere&) const = default;
  };
  std::map<std::vector<ClassHere>, std::int64_t> kinds;  // -> number of nodes
  for (std::size_t i = 0; i < ranks_.size();) {
    std::int32_t node = topology_.node_of(ranks_[i]), lowest = set_of[i];
    std::map<std::int32_t, ClassHere> classes;
    for (; i < ranks_.size() && topology_.node_of(ranks_[i]) == node; ++i) {
      std::int32_t device_class = topology_.class_of(ranks_[i]);
      ClassHere& here =
          classes.try_emplace(device_class, ClassHere{device_class, 0, set_of[i], set_of[i]})
              .first->second;
      ++here.ranks;
      here.least_set = std::min(here.least_set, set_of[i]);
      here.greatest_set = std::max(here.greatest_set, set_of[i]);
      lowest = std::min(lowest, set_of[i]);
    }
    std::vector<ClassHere> kind;
    for (auto& [device_class, here] : classes)
      kind.push_back(
          {device_class, here.ranks, here.least_set - lowest, here.greatest_set - lowest});
    ++kinds[kind];
  }

  Entrance entrance(topology_);
  std::int32_t place = 0;
  for (const auto& entry : kinds) {
    const std::vector<ClassHere>& kind = entry.first;
    std::int64_t nodes = entry.second;
    auto end_of = [&](const ClassHere& here) {
      return End{place, 0, here.device_class, here.ranks * nodes, nodes};
    };
    for (const ClassHere& from : kind) {
      for (const ClassHere& to : kind)
        if (std::min(from.least_set, to.least_set) != std::max(from.greatest_set, to.greatest_set))
          entrance.add(rule_within(topology_, from.device_class, to.device_class), end_of(from),
                       end_of(to));
      // Every node is a source and a destination of routes between nodes.
      if (by_node_.size() > 1)
        entrance.add(topology_.node().rule_between, end_of(from), end_of(from));
    }
    ++place;
  }
  return entrance.capacity();
}

}  // namespace reshard
