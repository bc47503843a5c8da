// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/capacity.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard {
namespace {

// One end of a bundle of routes: all ranks of one class on one side of one kind of node.
struct End {
  std::int32_t place;  // the kind of node
  std::int32_t side;   // a subset of the ranks there
  std::int32_t device_class;
  std::int64_t ranks, nodes;
};

// Collects bundles of routes by rule, and the distinct resources at each hop of the rule.
class Entrance {
 public:
  explicit Entrance(const Topology& topology) : topology_(topology) {}

  void add(std::int32_t rule, const End& source, const End& destination) {
    const std::vector<Hop>& hops = topology_.node().rules[to_index(rule)].hops;
    std::vector<Resources>& by_hop = by_rule_[rule];
    by_hop.resize(hops.size());
    for (std::size_t i = 0; i < hops.size(); ++i) add_hop(by_hop[i], hops[i], source, destination);
  }

  // Kind, index, place, side, class.
  using Key = std::tuple<Hop::Kind, std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
  using Resources = std::map<Key, Int128>;  // with their capacity

  // The three choices of hops: first, last, narrowest.
  std::array<Resources, 3> choices() const {
    std::array<Resources, 3> out;
    for (const auto& [rule, by_hop] : by_rule_) {
      out[0].insert(by_hop.front().begin(), by_hop.front().end());
      out[1].insert(by_hop.back().begin(), by_hop.back().end());
      auto least =
          std::min_element(by_hop.begin(), by_hop.end(),
                           [](const Resources& a, const Resources& b) { return sum(a) < sum(b); });
      out[2].insert(least->begin(), least->end());
    }
    return out;
  }

  // The choice with the least capacity, and the least latency of any rule.
  Passage passage() const {
    auto [first, last, narrowest] = choices();
    Passage out{std::min({sum(first), sum(last), sum(narrowest)})};
    for (const auto& entry : by_rule_)
      out.latency_ps =
          std::min(out.latency_ps, topology_.node().rules[to_index(entry.first)].latency_ps);
    return out;
  }

  // Whether every receipt crosses one of the chosen hops. If switches inside a node multicast, what
  // leaves a port once can reach many ranks: only the receiving ranks' own ports see every receipt.
  bool shows_receipts(Reducing switches) const {
    if (switches.network) return false;
    if (!switches.nvlink) return true;
    return std::all_of(by_rule_.begin(), by_rule_.end(), [&](const auto& entry) {
      return entry.first == topology_.node().rule_between ||
             topology_.node().rules[to_index(entry.first)].hops.back().kind ==
                 Hop::Kind::DestinationIn;
    });
  }

 private:
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
        // Both kinds name the same resource, which both sides of a node share.
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

// Per class, how many of `all` are not in `part`.
ClassCounts without(const ClassCounts& all, const ClassCounts& part) {
  ClassCounts out;
  std::size_t i = 0;
  for (auto [device_class, count] : all) {
    std::int64_t taken = i < part.size() && part[i].first == device_class ? part[i++].second : 0;
    if (count > taken) out.push_back({device_class, count - taken});
  }
  return out;
}

constexpr std::int32_t kHere = 0, kElsewhere = 1;   // places
constexpr std::int32_t kInside = 0, kSameNode = 1;  // sides

// `ranks` on the job's other nodes. The one rule between nodes does not depend on the class.
End far_end(std::int64_t ranks, std::size_t nodes_of_job) {
  return {kElsewhere, 0, -1, ranks, static_cast<std::int64_t>(nodes_of_job) - 1};
}

// The routes into A from B and R, or the reverse.
Passage passage_around(const Topology& topology, const ClassCounts& inside,
                       const ClassCounts& others, const End& elsewhere, bool outwards) {
  Entrance entrance(topology);
  auto add = [&](std::int32_t rule, const End& from, const End& to) {
    outwards ? entrance.add(rule, to, from) : entrance.add(rule, from, to);
  };
  for (auto [mine, my_count] : inside) {
    End in{kHere, kInside, mine, my_count, 1};
    for (auto [other, other_count] : others)
      add(outwards ? rule_within(topology, mine, other) : rule_within(topology, other, mine),
          End{kHere, kSameNode, other, other_count, 1}, in);
    if (elsewhere.ranks > 0) add(topology.node().rule_between, elsewhere, in);
  }
  return entrance.passage();
}

// Capacities by the routes that cross them, for two sets of routes with one choice of hops each.
SharedCapacity shared_capacity(const Entrance::Resources& inside,
                               const Entrance::Resources& between) {
  SharedCapacity out;
  for (const auto& [key, rate] : inside) (between.count(key) > 0 ? out.both : out.inside) += rate;
  for (const auto& [key, rate] : between)
    if (inside.count(key) == 0) out.between += rate;
  return out;
}

// One class on one node: its number of ranks, and the least and greatest of their sets.
struct ClassHere {
  std::int32_t device_class;
  std::int64_t ranks;
  std::int32_t least_set, greatest_set;
  auto operator<=>(const ClassHere&) const = default;
};

// The kinds of node and how many nodes of each kind there are. Nodes are of one kind if they have
// the same classes in the same sets, numbered relative to the set of the node's first rank.
std::map<std::vector<ClassHere>, std::int64_t> kinds_of_node(
    const Topology& topology, const std::vector<Rank>& ranks,
    const std::vector<std::int32_t>& set_of) {
  std::map<std::vector<ClassHere>, std::int64_t> kinds;
  for_each_node(
      topology, ranks, [&](std::int32_t, std::size_t begin, std::span<const Rank> of_node) {
        std::int32_t first = set_of[begin];
        std::map<std::int32_t, ClassHere> classes;
        for (std::size_t i = begin; i < begin + of_node.size(); ++i) {
          std::int32_t device_class = topology.class_of(ranks[i]);
          ClassHere& here =
              classes.try_emplace(device_class, ClassHere{device_class, 0, set_of[i], set_of[i]})
                  .first->second;
          ++here.ranks;
          here.least_set = std::min(here.least_set, set_of[i]);
          here.greatest_set = std::max(here.greatest_set, set_of[i]);
        }
        std::vector<ClassHere> kind;
        for (auto& [device_class, here] : classes)
          kind.push_back(
              {device_class, here.ranks, here.least_set - first, here.greatest_set - first});
        ++kinds[kind];
      });
  return kinds;
}

constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();

// ceil(bytes * 10^12 / rate), capped at the maximum of int64; `bytes` may be near 2^127.
std::int64_t transfer_time_ps(Int128 bytes, Int128 rate) {
  RESHARD_CHECK(rate > 0, "bytes must enter a set that no route leads into");
  // 2^63 ps are 9.2e6 s: beyond that many seconds the result is capped anyway, and below it bytes *
  // 10^12 can still overflow 128 bits.
  if (bytes / rate > kLongest / kPsPerSecond) return kLongest;
  Int128 seconds = bytes / rate, rest = bytes % rate;
  while (rest > (Int128{1} << 86)) {
    // Halving both rounds the quotient down, which keeps the bound valid.
    rest /= 2;
    rate = rate / 2 + 1;
  }
  Int128 ps = seconds * kPsPerSecond + ceil_div(rest * kPsPerSecond, rate);
  return static_cast<std::int64_t>(std::min<Int128>(ps, kLongest));
}

}  // namespace

ClassCounts classes_of(const Topology& topology, std::span<const Rank> ranks) {
  std::map<std::int32_t, std::int64_t> counts;
  for (Rank rank : ranks) ++counts[topology.class_of(rank)];
  return {counts.begin(), counts.end()};
}

std::int64_t Passage::least_ps(Int128 bytes) const {
  if (bytes == 0) return 0;
  std::int64_t moving_ps = transfer_time_ps(bytes, bytes_per_s);
  return moving_ps > kLongest - latency_ps ? kLongest : moving_ps + latency_ps;
}

JobCapacities::JobCapacities(const Topology& topology, std::vector<Rank> ranks)
    : topology_(topology), ranks_(std::move(ranks)) {
  for_each_node(topology, ranks_,
                [this](std::int32_t node, std::size_t, std::span<const Rank> here) {
                  by_node_.emplace_hint(by_node_.end(), node, classes_of(topology_, here));
                });
}

std::int64_t JobCapacities::elsewhere(const ClassCounts& here) const {
  auto ranks = static_cast<std::int64_t>(ranks_.size());
  for (auto [device_class, count] : here) ranks -= count;
  return ranks;
}

std::pair<Passage, Passage> JobCapacities::into(std::int32_t node,
                                                const std::vector<Rank>& members) {
  const ClassCounts& here = by_node_.at(node);
  ClassCounts inside = classes_of(topology_, members);
  auto [entry, is_new] = known_.try_emplace({here, inside});
  if (is_new) {
    ClassCounts others = without(here, inside);
    End far = far_end(elsewhere(here), by_node_.size());
    entry->second = {passage_around(topology_, inside, others, far, false),
                     passage_around(topology_, inside, others, far, true)};
  }
  return entry->second;
}

Passage JobCapacities::from_elsewhere(std::int64_t senders, const std::vector<Rank>& members) {
  ClassCounts inside = classes_of(topology_, members);
  auto [entry, is_new] = known_from_elsewhere_.try_emplace({senders, inside});
  if (is_new) {
    End far = far_end(senders, by_node_.size());
    entry->second = passage_around(topology_, inside, {}, far, false);
  }
  return entry->second;
}

JobCapacities::NodePassages JobCapacities::passages_into(std::int32_t node,
                                                         const std::vector<Rank>& members) const {
  const ClassCounts& here = by_node_.at(node);
  ClassCounts inside = classes_of(topology_, members), others = without(here, inside);
  End far = far_end(elsewhere(here), by_node_.size());
  return {passage_around(topology_, inside, {}, far, false),
          passage_around(topology_, inside, others, End{}, false),
          passage_around(topology_, others, {}, far, false)};
}

LevelPassages JobCapacities::of_level(const std::vector<std::int32_t>& set_of,
                                      Reducing switches) const {
  Entrance inside(topology_), between(topology_);
  std::int32_t place = 0;
  for (const auto& entry : kinds_of_node(topology_, ranks_, set_of)) {
    const std::vector<ClassHere>& kind = entry.first;
    std::int64_t nodes = entry.second;
    auto end_of = [&](const ClassHere& here) {
      return End{place, 0, here.device_class, here.ranks * nodes, nodes};
    };
    for (const ClassHere& from : kind) {
      for (const ClassHere& to : kind) {
        if (from.device_class == to.device_class && from.ranks == 1) continue;
        std::int32_t rule = rule_within(topology_, from.device_class, to.device_class);
        // Whether both classes have ranks in one set, and whether in different sets: if the ranges
        // of sets do not show it, the routes count as both, which adds capacity and keeps the bound
        // valid.
        if (from.least_set <= to.greatest_set && to.least_set <= from.greatest_set)
          inside.add(rule, end_of(from), end_of(to));
        if (std::min(from.least_set, to.least_set) != std::max(from.greatest_set, to.greatest_set))
          between.add(rule, end_of(from), end_of(to));
      }
      // Every node is a source and a destination of routes between nodes.
      if (by_node_.size() > 1)
        between.add(topology_.node().rule_between, end_of(from), end_of(from));
    }
    ++place;
  }

  Passage across_sets = between.passage();
  LevelPassages out{across_sets, std::min(across_sets.latency_ps, inside.passage().latency_ps), {}};
  if (!inside.shows_receipts(switches) || !between.shows_receipts(switches)) return out;
  auto inner = inside.choices(), outer = between.choices();
  for (std::size_t in = 0; in < inner.size(); ++in)
    for (std::size_t across = 0; across < outer.size(); ++across)
      if (!switches.nvlink || (in == 1 && across == 1))
        out.choices.push_back(shared_capacity(inner[in], outer[across]));
  return out;
}

Passage JobCapacities::of_scope(std::int32_t node, const ScopeParts& parts) {
  const ClassCounts& here = by_node_.at(node);
  auto [entry, is_new] = known_scopes_.try_emplace({here, parts});
  if (!is_new) return entry->second;

  Entrance entrance(topology_);
  const ClassCounts* sides[] = {&parts.others, &parts.senders, &parts.idle_senders};
  ClassCounts others = here;
  for (const ClassCounts* side : sides) others = without(others, *side);
  End far = far_end(elsewhere(here), by_node_.size());
  for (std::int32_t to = 0; to < 3; ++to)
    for (auto [to_class, to_count] : *sides[to]) {
      End receiver{kHere, to, to_class, to_count, 1};
      for (std::int32_t from = 1; from < 3; ++from)
        for (auto [from_class, from_count] : *sides[from])
          if (from != to || from_class != to_class || from_count > 1)
            entrance.add(rule_within(topology_, from_class, to_class),
                         {kHere, from, from_class, from_count, 1}, receiver);
      if (to == 2) continue;
      for (auto [from_class, from_count] : others)
        entrance.add(rule_within(topology_, from_class, to_class),
                     {kHere, 3, from_class, from_count, 1}, receiver);
      if (far.ranks > 0) entrance.add(topology_.node().rule_between, far, receiver);
    }
  return entry->second = entrance.passage();
}

}  // namespace reshard
