// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/rank_routes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/disjoint_sets.h"

namespace reshard {

// Identifies resources by what they belong to, so that renumbering ranks renumbers them.
class RouteBuilder {
 public:
  RouteBuilder(RankRoutes& routes, const Topology& topology, const std::vector<Rank>& ranks)
      : routes_(routes), topology_(topology), ranks_(ranks) {
    std::map<std::int32_t, std::int32_t> dense;
    for (Rank rank : ranks) {
      std::int32_t node = topology.node_of(rank);
      routes.node_of_.push_back(dense.try_emplace(node, dense.size()).first->second);
      class_of_.push_back(topology.class_of(rank));
    }
    nodes_ = static_cast<std::int32_t>(dense.size());
  }

  void build(const Symmetry& symmetry) {
    std::map<std::tuple<std::int32_t, std::int32_t>, std::vector<Slot>> by_class;  // by node, class
    for (Slot slot = 0; slot < slots(); ++slot)
      by_class[{routes_.node_of(slot), class_of(slot)}].push_back(slot);
    for (const auto& [from, sources] : by_class)
      for (const auto& [to, destinations] : by_class)
        if (std::get<0>(from) == std::get<0>(to) && (from != to || sources.size() > 1))
          add_crossing(topology_.node()
                           .rule_within[std::get<1>(from) * topology_.classes() + std::get<1>(to)],
                       false, sources, destinations);
    if (nodes_ > 1) {
      std::vector<Slot> all(to_index(slots()));
      std::iota(all.begin(), all.end(), Slot{0});
      routes_.between_ = static_cast<std::int32_t>(routes_.trunks_.size());
      add_crossing(topology_.node().rule_between, true, all, all);
    }
    merge(symmetry);
    share_ranges();
    auto grouped = [](std::size_t keys, const std::vector<RankRoutes::AccessLink>& links,
                      auto key_of) {
      return Grouped<RankRoutes::AccessLink>(keys, [&](auto put) {
        for (const RankRoutes::AccessLink& link : links) put(key_of(link), link);
      });
    };
    auto slot = [](const RankRoutes::AccessLink& link) { return link.slot; };
    auto trunk = [](const RankRoutes::AccessLink& link) { return link.trunk; };
    routes_.up_ = grouped(ranks_.size(), up_, slot);
    routes_.down_ = grouped(ranks_.size(), down_, slot);
    routes_.up_at_ = grouped(routes_.trunks_.size(), up_, trunk);
    routes_.down_at_ = grouped(routes_.trunks_.size(), down_, trunk);
  }

 private:
  // Kind and index of the hop; then the slot for a port, the node for a resource that a node has
  // once, else 0. Hops at either end give a node's resource the same key.
  using Key = std::tuple<Hop::Kind, std::int32_t, std::int32_t>;

  Slot slots() const { return static_cast<Slot>(ranks_.size()); }
  std::int32_t class_of(Slot slot) const { return class_of_[to_index(slot)]; }

  Key key_of(const Hop& hop, Slot slot) const {
    switch (hop.kind) {
      case Hop::Kind::SourceOut:
      case Hop::Kind::DestinationIn:
        return {hop.kind, hop.index, slot};
      case Hop::Kind::SourceNodeShared:
      case Hop::Kind::DestinationNodeShared:
        return {Hop::Kind::SourceNodeShared, hop.index, routes_.node_of(slot)};
      case Hop::Kind::Fabric:
        break;
    }
    return {Hop::Kind::Fabric, hop.index, 0};
  }

  void add_class(const Hop& hop, Slot slot) {
    Key key = key_of(hop, slot);
    auto [at, is_new] = resources_.try_emplace(key, static_cast<std::int32_t>(keys_.size()));
    if (is_new) {
      keys_.push_back(key);
      Rank rank = ranks_[to_index(slot)];
      rates_.push_back(topology_.resource_bytes_per_s(topology_.resource(hop, rank, rank)));
      names_.push_back(topology_.hop_name(hop));
    }
    routes_.class_list_.push_back(at->second);
  }

  template <class Wanted>
  RankRoutes::Range add_classes(const std::vector<Hop>& hops, Slot slot, Wanted&& wanted) {
    auto first = static_cast<std::uint32_t>(routes_.class_list_.size());
    for (const Hop& hop : hops)
      if (wanted(hop.kind)) add_class(hop, slot);
    return {first, static_cast<std::uint32_t>(routes_.class_list_.size()) - first};
  }

  void add_crossing(std::int32_t rule, bool between_nodes, const std::vector<Slot>& sources,
                    const std::vector<Slot>& destinations) {
    const RouteRule& route = topology_.node().rules[rule];
    auto id = static_cast<std::int32_t>(routes_.trunks_.size());
    using Kind = Hop::Kind;
    for (Slot slot : sources)
      up_.push_back({id, slot, add_classes(route.hops, slot, [](Kind kind) {
                       return kind == Kind::SourceOut || kind == Kind::SourceNodeShared;
                     })});
    for (Slot slot : destinations)
      down_.push_back({id, slot, add_classes(route.hops, slot, [](Kind kind) {
                         return kind == Kind::DestinationIn || kind == Kind::DestinationNodeShared;
                       })});
    RankRoutes::Range middle =
        add_classes(route.hops, sources[0], [](Kind kind) { return kind == Kind::Fabric; });
    routes_.trunks_.push_back({rule, between_nodes, route.latency_ps, middle});
  }

  std::int32_t image(std::int32_t resource, const Symmetry::Generator& generator) const {
    Key key = keys_[to_index(resource)];
    std::int32_t& place = std::get<2>(key);
    if (std::get<0>(key) == Hop::Kind::SourceNodeShared)
      place = routes_.node_of(generator.slot[to_index(first_slot_[to_index(place)])]);
    else if (std::get<0>(key) != Hop::Kind::Fabric)
      place = generator.slot[to_index(place)];
    return resources_.at(key);
  }

  // Makes every orbit of resources a resource class.
  void merge(const Symmetry& symmetry) {
    first_slot_.assign(to_index(nodes_), -1);
    for (Slot slot = slots(); slot-- > 0;) first_slot_[to_index(routes_.node_of(slot))] = slot;
    DisjointSets orbits(keys_.size());
    for (const Symmetry::Generator& generator : symmetry.generators())
      for (std::size_t i = 0; i < keys_.size(); ++i)
        orbits.join(i, to_index(image(static_cast<std::int32_t>(i), generator)));
    std::vector<std::int32_t> resource_class(keys_.size(), -1);
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      std::int32_t& mine = resource_class[orbits.first(i)];
      if (mine < 0) {
        mine = static_cast<std::int32_t>(routes_.classes_.size());
        routes_.classes_.push_back({rates_[i], 0, names_[i]});
      }
      ++routes_.classes_[to_index(mine)].resources;
      resource_class[i] = mine;
    }
    for (std::int32_t& at : routes_.class_list_) at = resource_class[to_index(at)];
  }

  // Few ranges differ if there are symmetries.
  void share_ranges() {
    std::map<std::vector<std::int32_t>, RankRoutes::Range> known;
    std::vector<std::int32_t> list;
    std::vector<RankRoutes::Range*> all;
    for (RankRoutes::AccessLink& link : up_) all.push_back(&link.classes);
    for (RankRoutes::AccessLink& link : down_) all.push_back(&link.classes);
    for (RankRoutes::Trunk& trunk : routes_.trunks_) all.push_back(&trunk.classes);
    for (RankRoutes::Range* range : all) {
      std::span<const std::int32_t> own = routes_.classes_of(*range);
      auto [at, is_new] = known.try_emplace({own.begin(), own.end()});
      if (is_new) {
        at->second = {static_cast<std::uint32_t>(list.size()), range->count};
        list.insert(list.end(), own.begin(), own.end());
      }
      *range = at->second;
    }
    for (RankRoutes::Range* range : all)
      if (range->count == 0) range->first = static_cast<std::uint32_t>(list.size());
    routes_.class_list_ = std::move(list);
    routes_.ranges_with_ = Grouped<std::uint32_t>(routes_.classes_.size(), [&](auto put) {
      for (const auto& [classes, range] : known)
        for (std::int32_t resource_class : classes) put(resource_class, range.first);
    });
  }

  RankRoutes& routes_;
  const Topology& topology_;
  const std::vector<Rank>& ranks_;
  std::int32_t nodes_ = 0;
  std::vector<std::int32_t> class_of_;  // by slot
  std::vector<Slot> first_slot_;        // by node
  std::map<Key, std::int32_t> resources_;
  std::vector<Key> keys_;
  std::vector<std::int64_t> rates_;
  std::vector<std::string> names_;
  std::vector<RankRoutes::AccessLink> up_, down_;
};

RankRoutes::RankRoutes(const Topology& topology, const std::vector<Rank>& ranks,
                       const Symmetry& symmetry) {
  RouteBuilder(*this, topology, ranks).build(symmetry);
}

std::int32_t RankRoutes::trunk(Slot from, Slot to) const {
  if (node_of(from) != node_of(to)) return between_;
  for (const AccessLink& up : up_from(from)) {
    if (up.trunk == between_) continue;
    for (const AccessLink& down : down_to(to))
      if (down.trunk == up.trunk) return up.trunk;
  }
  RESHARD_CHECK(false, "two ranks without a route");
  return -1;
}

}  // namespace reshard
