// SPDX-License-Identifier: BSD-3-Clause
// Examines two nodes if nodes are connected, because the network is what both of them reach. Since
// all nodes are alike, the wiring of the first applies to all.
#include "sim/picture/topology/wiring.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/disjoint_sets.h"

namespace reshard::sim {
namespace {

std::int32_t resources_per_node(const Topology& topology) {
  return (topology.resource_count() - static_cast<std::int32_t>(topology.fabric().size())) /
         topology.nodes();
}

// The same node with only its first devices. Groups are dropped: they are names that routes do not
// need.
NodeTemplate first_devices(NodeTemplate node, std::int32_t count) {
  node.groups.clear();
  if (node.devices <= count) return node;
  node.devices = count;
  if (node.class_of.empty()) return node;
  std::int32_t before = 1, classes = 1;
  for (std::int32_t c : node.class_of) before = std::max(before, c + 1);
  node.class_of.resize(to_index(count));
  for (std::int32_t c : node.class_of) classes = std::max(classes, c + 1);
  IndexVector<std::int32_t, std::int32_t> rules;
  for (std::int32_t from = 0; from < classes; ++from)
    for (std::int32_t to = 0; to < classes; ++to)
      rules.push_back(node.rule_within[from * before + to]);
  node.rule_within = std::move(rules);
  return node;
}

// A topology of one node, or of two if there are routes between nodes.
Topology model_of(const Topology& topology, std::int32_t most_devices) {
  return Topology(topology.name(), first_devices(topology.node(), most_devices), topology.fabric(),
                  topology.node().rule_between >= 0 ? 2 : 1);
}

class WiringFinder {
 public:
  WiringFinder(const Topology& topology, std::int32_t most_devices)
      : model_(model_of(topology, most_devices)),
        per_node_(resources_per_node(model_)),
        all_drawn_(model_.node().devices == topology.node().devices),
        resources_(model_.resource_count()),
        other_way_(to_index(resources_), kUnknown),
        own_(to_index(resources_), {kUnknown, kUnknown}),
        ends_(to_index(2 * resources_ + model_.devices())) {
    for (std::int32_t device = 0; device < model_.devices(); ++device)
      devices_.push_back(Rank{device});
  }

  Wiring run() {
    for (Rank a : devices_)
      for (Rank b : devices_)
        if (a < b) match_directions(a, b);
    keep_agreed_directions();
    for (Rank a : devices_)
      for (Rank b : devices_)
        if (a != b) follow(a, b);
    for (std::int32_t r = 0; r < resources_; ++r)
      if (other_way_[r] >= 0 && other_way_[r] != r) ends_.join(start(r), finish(other_way_[r]));
    join_own_starts();
    collect();
    leave_out_single_joints();
    return std::move(out_);
  }

 private:
  static constexpr std::int32_t kUnknown = -1, kNone = -2, kFabric = 2;

  // A resource of a node that routes cross in both directions is a cable of one device if that
  // device is an end of all routes across it; its direction then depends on the route. Otherwise it
  // is a place, and its start and finish are the same end.
  bool both_ways(std::int32_t r) const { return other_way_[r] == r; }
  bool is_place(std::int32_t r) const {
    return both_ways(r) && (owner(r) == kFabric || (own_[r].first < 0 && own_[r].second < 0));
  }
  std::size_t start(std::int32_t r) const { return to_index(2 * r); }
  std::size_t finish(std::int32_t r) const { return to_index(is_place(r) ? 2 * r : 2 * r + 1); }
  // Whether a route to `to` crosses the resource from its finish to its start.
  bool reversed(std::int32_t r, Rank to) const {
    std::int32_t owner = own_[r].first >= 0 ? own_[r].first : own_[r].second;
    return both_ways(r) && !is_place(r) && owner == to_int(to);
  }
  std::size_t end_of(Rank device) const { return to_index(2 * resources_ + to_int(device)); }
  bool is_device(std::size_t end) const { return end >= to_index(2 * resources_); }

  void match_directions(Rank a, Rank b) {
    std::vector<ResourceId> there = model_.route(a, b).resources,
                            back = model_.route(b, a).resources;
    auto match = [&](ResourceId one, std::int32_t other) {
      auto r = static_cast<std::int32_t>(one);
      other_way_[r] = other_way_[r] == kUnknown || other_way_[r] == other ? other : kNone;
      auto& [first, second] = own_[r];
      if (first == kUnknown && second == kUnknown)
        first = to_int(a), second = to_int(b);
      else
        for (std::int32_t* end : {&first, &second})
          if (*end != to_int(a) && *end != to_int(b)) *end = kNone;
    };
    auto crossed_by = [](const std::vector<ResourceId>& route) {
      return [&route](ResourceId id) {
        return std::find(route.begin(), route.end(), id) != route.end();
      };
    };
    for (ResourceId id : there)
      if (crossed_by(back)(id)) match(id, static_cast<std::int32_t>(id));
    std::vector<ResourceId> all = there;
    std::erase_if(there, crossed_by(back));
    std::erase_if(back, crossed_by(all));
    bool alike = there.size() == back.size();
    std::reverse(back.begin(), back.end());
    for (std::size_t i = 0; i < there.size(); ++i)
      match(there[i], alike ? static_cast<std::int32_t>(back[i]) : kNone);
    for (std::size_t i = 0; i < back.size(); ++i)
      match(back[i], alike ? static_cast<std::int32_t>(there[i]) : kNone);
  }

  // Two resources are directions of one cable only if each matched the other and both are in the
  // same node.
  void keep_agreed_directions() {
    auto matched = other_way_;
    for (std::int32_t r = 0; r < resources_; ++r) {
      std::int32_t other = matched[r];
      if (other >= 0 && (matched[other] != r || owner(other) != owner(r))) other_way_[r] = kNone;
    }
  }

  void follow(Rank a, Rank b) {
    const Route route = model_.route(a, b);
    // A file can list a reverse route in the order of the forward one, which says nothing new.
    if (b < a && route.resources == model_.route(b, a).resources) return;
    PathClass path_class = model_.rule(a, b).path_class();
    std::size_t at = end_of(a);
    bool place = false;  // `at` belongs to a place
    for (ResourceId id : route.resources) {
      auto r = static_cast<std::int32_t>(id);
      bool own = is_device(at) && model_.hop_of(id).kind == Hop::Kind::SourceOut;
      meet(at, reversed(r, b) ? finish(r) : start(r),
           own || (!is_device(at) && !place && !is_place(r)));
      note(start(r), path_class);
      note(finish(r), path_class);
      at = reversed(r, b) ? start(r) : finish(r);
      place = is_place(r);
    }
    bool own = model_.hop_of(route.resources.back()).kind == Hop::Kind::DestinationIn;
    meet(at, end_of(b), own);
  }

  void meet(std::size_t a, std::size_t b, bool same) {
    if (same)
      ends_.join(a, b);
    else
      touching_.emplace(a, b);
  }

  void note(std::size_t end, PathClass path_class) {
    auto [known, is_new] = classes_.emplace(end, path_class);
    known->second = std::min(known->second, path_class);
  }

  // An end that touches nothing but one device is an end at that device.
  void join_own_starts() {
    std::map<std::size_t, std::set<std::size_t>> neighbours;
    for (auto [a, b] : touching_) {
      neighbours[ends_.first(a)].insert(ends_.first(b));
      neighbours[ends_.first(b)].insert(ends_.first(a));
    }
    std::set<std::size_t> devices, fixed;
    for (Rank device : devices_) devices.insert(ends_.first(end_of(device)));
    fixed = devices;
    for (std::int32_t r = 0; r < resources_; ++r)
      if (is_place(r)) fixed.insert(start(r));
    for (const auto& [root, others] : neighbours)
      if (!fixed.contains(root) && others.size() == 1 && devices.contains(*others.begin()))
        ends_.join(root, *others.begin());
  }

  // The node of a resource, or kFabric.
  std::int32_t owner(std::int32_t r) const {
    return r >= model_.nodes() * per_node_ ? kFabric : r / per_node_;
  }

  Wiring::Link link(std::int32_t r) const {
    std::int32_t inside = model_.nodes() * per_node_;
    return r >= inside ? Wiring::Link{true, r - inside} : Wiring::Link{false, r};
  }

  std::int32_t spot(std::size_t end) const {
    auto found = spot_of_.find(end);
    return found == spot_of_.end() ? -1 : found->second;
  }
  void add_spot(std::size_t root, Wiring::Spot spot) {
    spot_of_.emplace(root, static_cast<std::int32_t>(out_.spots.size()));
    out_.spots.push_back(spot);
  }

  // Collects the spots of the first node and those outside.
  void collect() {
    out_.devices = model_.node().devices;
    for (std::int32_t device = 0; device < out_.devices; ++device)
      add_spot(ends_.first(end_of(Rank{device})), {Wiring::Spot::Kind::Device, false});
    std::map<std::size_t, std::set<std::int32_t>> owners;
    std::map<std::size_t, std::int32_t> places;
    for (std::int32_t r = 0; r < resources_; ++r) {
      if (other_way_[r] == kUnknown) {
        if (owner(r) != 1 && all_drawn_) out_.idle.push_back(model_.resource_name(ResourceId{r}));
        continue;
      }
      for (std::size_t end : {start(r), finish(r)}) owners[ends_.first(end)].insert(owner(r));
      if (is_place(r)) places.emplace(ends_.first(start(r)), r);
    }
    std::map<std::size_t, PathClass> best;
    for (auto [end, path_class] : classes_) {
      auto [known, is_new] = best.emplace(ends_.first(end), path_class);
      known->second = std::min(known->second, path_class);
    }
    for (const auto& [root, of] : owners) {
      if (spot_of_.contains(root) || of == std::set<std::int32_t>{1}) continue;
      bool outside = of.size() > 1 || of.contains(kFabric);
      auto place = places.find(root);
      if (place == places.end())
        add_spot(root, {Wiring::Spot::Kind::Joint, outside, {}, best.at(root)});
      else
        add_spot(root, {Wiring::Spot::Kind::Shared, outside, link(place->second), best.at(root)});
    }
    collect_joins();
  }

  void collect_joins() {
    std::set<std::pair<std::int32_t, std::int32_t>> pairs;
    for (auto [a, b] : touching_) {
      std::int32_t one = spot(ends_.first(a)), other = spot(ends_.first(b));
      if (one >= 0 && other >= 0 && one != other) pairs.insert(std::minmax(one, other));
    }
    for (std::int32_t r = 0; r < resources_; ++r) {
      if (other_way_[r] == kUnknown || is_place(r) || owner(r) == 1) continue;
      std::int32_t from = spot(ends_.first(start(r))), to = spot(ends_.first(finish(r)));
      PathClass path_class = std::min(classes_.at(start(r)), classes_.at(finish(r)));
      bool outside = out_.spots[to_index(from)].outside && out_.spots[to_index(to)].outside;
      std::int32_t back = other_way_[r] == r ? kNone : other_way_[r];
      if (from == to || outside) {
        // A link with both ends at one spot, or both outside, is also drawn as a place.
        auto place = static_cast<std::int32_t>(out_.spots.size());
        out_.spots.push_back(
            {Wiring::Spot::Kind::Shared, owner(r) == kFabric, link(r), path_class});
        for (std::int32_t end : {from, to}) pairs.emplace(end, place);
      } else if (back < 0 || r < back) {
        out_.cables.push_back(
            {from, to, link(r), back >= 0 ? std::optional(link(back)) : std::nullopt, path_class});
      }
    }
    out_.touching.assign(pairs.begin(), pairs.end());
  }

  // Removes joints with only one cable that touch a single Shared spot: the cable then ends at that
  // spot.
  void leave_out_single_joints() {
    std::vector<std::int32_t> ends(out_.spots.size(), 0), becomes(out_.spots.size());
    std::vector<std::set<std::int32_t>> touched(out_.spots.size());
    for (const Wiring::Cable& cable : out_.cables)
      ++ends[to_index(cable.from)], ++ends[to_index(cable.to)];
    for (auto [a, b] : out_.touching)
      touched[to_index(a)].insert(b), touched[to_index(b)].insert(a);
    std::vector<Wiring::Spot> kept;
    for (std::size_t s = 0; s < out_.spots.size(); ++s) {
      bool single = out_.spots[s].kind == Wiring::Spot::Kind::Joint && ends[s] == 1 &&
                    touched[s].size() == 1 &&
                    out_.spots[to_index(*touched[s].begin())].kind == Wiring::Spot::Kind::Shared;
      becomes[s] = single ? -1 : static_cast<std::int32_t>(kept.size());
      if (!single) kept.push_back(out_.spots[s]);
    }
    for (std::size_t s = 0; s < out_.spots.size(); ++s)
      if (becomes[s] < 0) becomes[s] = becomes[to_index(*touched[s].begin())];
    out_.spots = std::move(kept);
    for (Wiring::Cable& cable : out_.cables)
      cable.from = becomes[to_index(cable.from)], cable.to = becomes[to_index(cable.to)];
    for (auto& [a, b] : out_.touching) a = becomes[to_index(a)], b = becomes[to_index(b)];
    std::erase_if(out_.touching, [](auto pair) { return pair.first == pair.second; });
  }

  const Topology model_;
  const std::int32_t per_node_;
  const bool all_drawn_;
  const std::int32_t resources_;
  // By resource: the other direction of its cable; itself if both directions cross it; kNone.
  IndexVector<std::int32_t, std::int32_t> other_way_;
  // By resource: the devices at an end of all routes across it.
  IndexVector<std::int32_t, std::pair<std::int32_t, std::int32_t>> own_;
  DisjointSets ends_;  // two per resource, then devices
  std::vector<Rank> devices_;
  std::set<std::pair<std::size_t, std::size_t>> touching_;
  std::map<std::size_t, PathClass> classes_;     // by end
  std::map<std::size_t, std::int32_t> spot_of_;  // by first end of a joined set
  Wiring out_;
};

}  // namespace

ResourceId Wiring::Link::in(const Topology& topology, std::int32_t node) const {
  return ResourceId{(fabric ? topology.nodes() : node) * resources_per_node(topology) + index};
}

Wiring wiring_of(const Topology& topology, std::int32_t most_devices) {
  return WiringFinder(topology, most_devices).run();
}

}  // namespace reshard::sim
