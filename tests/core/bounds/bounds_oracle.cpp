// SPDX-License-Identifier: BSD-3-Clause
#include "tests/core/bounds/bounds_oracle.h"

#include <algorithm>
#include <limits>

namespace reshard::test {
namespace {

// Row-major numbers of the elements that the rank at `position` holds.
std::vector<std::int64_t> elements_of(const Layout& layout, std::int32_t position) {
  std::vector<std::int64_t> out;
  for (const Box& box : layout.boxes(position)) {
    std::vector<std::int64_t> numbers{0};
    for (int dim = 0; dim < box.dims(); ++dim) {
      std::vector<std::int64_t> next;
      for (std::int64_t number : numbers)
        for (std::int64_t i = box.lo[dim]; i < box.hi[dim]; ++i)
          next.push_back(number * layout.shape()[dim] + i);
      numbers = next;
    }
    out.insert(out.end(), numbers.begin(), numbers.end());
  }
  return out;
}

// The elements that the rank needs from nobody: source ranks that stand elsewhere on an axis from S
// to P hold them.
std::set<std::int64_t> zeros_of(const Request& request, std::int32_t position) {
  const Layout &source = request.source(), &destination = request.destination();
  std::set<std::int64_t> out;
  if (source.mesh().shape() != destination.mesh().shape()) return out;
  MeshCoordinate mine = destination.mesh().coordinate(position);
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(source.mesh().axes()); ++axis) {
    if (!source.placements()[axis].is_shard_like() || !destination.placements()[axis].is_partial())
      continue;
    for (std::int32_t p = 0; p < source.mesh().size(); ++p)
      if (source.mesh().coordinate(p)[axis] != mine[axis])
        for (std::int64_t element : elements_of(source, p)) out.insert(element);
  }
  return out;
}

bool meets(const std::set<Rank>& a, const std::set<Rank>& b) {
  return std::any_of(a.begin(), a.end(), [&](Rank rank) { return b.count(rank) > 0; });
}

}  // namespace

Items items_of(const Request& request) {
  // Element -> addend -> ranks.
  std::map<std::int64_t, std::map<std::int64_t, std::set<Rank>>> holders;
  const Layout &source = request.source(), &destination = request.destination();
  for (std::int32_t position = 0; position < source.mesh().size(); ++position)
    for (std::int64_t element : elements_of(source, position))
      holders[element][request.addend_of(position)].insert(source.mesh().rank_at(position));
  // Needers of one element that want different addends need different items.
  std::map<std::pair<std::int64_t, std::vector<std::int64_t>>, std::set<Rank>> needers;
  for (std::int32_t position = 0; position < destination.mesh().size(); ++position) {
    std::set<std::int64_t> zeros = zeros_of(request, position);
    for (std::int64_t element : elements_of(destination, position))
      if (!zeros.contains(element))
        needers[{element, request.addends_wanted(position)}].insert(
            destination.mesh().rank_at(position));
  }
  Items out;
  out.width_bytes = size_bytes(request.dtype());
  for (const auto& [what, ranks] : needers) {
    Item item;
    item.needers = ranks;
    for (std::int64_t addend : what.second)
      item.holders[addend] = holders.at(what.first).at(addend);
    out.items.push_back(item);
  }
  return out;
}

std::map<std::string, std::set<Rank>> sets_of(const Topology& topology,
                                              const std::vector<Rank>& job) {
  std::vector<NamedGroup> groups = topology.groups();
  for (Rank rank : job) groups.push_back({"rank " + std::to_string(to_int(rank)), {rank}});
  std::map<std::string, std::set<Rank>> out;
  for (const NamedGroup& group : groups) {
    std::set<Rank> inside, outside;
    for (Rank rank : job)
      (std::count(group.devices.begin(), group.devices.end(), rank) > 0 ? inside : outside)
          .insert(rank);
    if (inside.empty() || outside.empty()) continue;
    out[group.name] = inside;
    out["all but " + group.name] = outside;
  }
  return out;
}

Int128 in_bytes(const Items& items, const std::set<Rank>& members) {
  Int128 bytes = 0;
  for (const Item& item : items.items) {
    bool lacks = std::any_of(item.holders.begin(), item.holders.end(),
                             [&](const auto& addend) { return !meets(addend.second, members); });
    if (meets(item.needers, members) && lacks) bytes += items.width_bytes;
  }
  return bytes;
}

namespace {

// The capacity of routes between these pairs: the least over three choices of one hop per rule.
Int128 capacity_of(const Topology& topology, const std::vector<std::pair<Rank, Rank>>& pairs) {
  std::map<const RouteRule*, std::vector<std::set<ResourceId>>> by_rule;
  for (auto [source, destination] : pairs) {
    Route route = topology.route(source, destination);
    std::vector<std::set<ResourceId>>& by_hop = by_rule[&topology.rule(source, destination)];
    by_hop.resize(route.resources.size());
    for (std::size_t hop = 0; hop < by_hop.size(); ++hop) by_hop[hop].insert(route.resources[hop]);
  }
  auto sum = [&](const std::set<ResourceId>& resources) {
    Int128 total = 0;
    for (ResourceId id : resources) total += topology.resource_bytes_per_s(id);
    return total;
  };
  std::set<ResourceId> first, last, narrowest;
  for (const auto& [rule, by_hop] : by_rule) {
    first.insert(by_hop.front().begin(), by_hop.front().end());
    last.insert(by_hop.back().begin(), by_hop.back().end());
    const std::set<ResourceId>* least = &by_hop.front();
    for (const std::set<ResourceId>& resources : by_hop)
      if (sum(resources) < sum(*least)) least = &resources;
    narrowest.insert(least->begin(), least->end());
  }
  return std::min({sum(first), sum(last), sum(narrowest)});
}

}  // namespace

Int128 capacity_into(const Topology& topology, const std::vector<Rank>& job,
                     const std::set<Rank>& members) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (Rank source : job)
    for (Rank destination : members)
      if (members.count(source) == 0) pairs.push_back({source, destination});
  return capacity_of(topology, pairs);
}

Int128 capacity_between(const Topology& topology, const std::vector<Rank>& job,
                        const std::vector<std::int32_t>& set_of) {
  std::vector<std::pair<Rank, Rank>> pairs;
  for (std::size_t i = 0; i < job.size(); ++i)
    for (std::size_t j = 0; j < job.size(); ++j)
      if (set_of[i] != set_of[j]) pairs.push_back({job[i], job[j]});
  return capacity_of(topology, pairs);
}

Int128 receipts_bytes(const Items& items) {
  Int128 bytes = 0;
  for (const Item& item : items.items) {
    auto k = static_cast<std::int64_t>(item.holders.size()),
         m = static_cast<std::int64_t>(item.needers.size());
    std::int64_t owning_needers = 0;
    for (Rank needer : item.needers)
      owning_needers +=
          std::any_of(item.holders.begin(), item.holders.end(),
                      [&](const auto& addend) { return addend.second.count(needer) > 0; });
    bytes += items.width_bytes * (k == 1               ? m - owning_needers
                                  : owning_needers > 0 ? (k - 1) + (m - 1)
                                                       : k + m - 1);
  }
  return bytes;
}

namespace {

// The least latency of a route into the rank, or out of it.
std::int64_t least_latency_ps(const Topology& topology, const std::vector<Rank>& job, Rank rank,
                              bool into) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (Rank other : job)
    if (other != rank)
      least = std::min(
          least, (into ? topology.route(other, rank) : topology.route(rank, other)).latency_ps);
  return least;
}

std::int64_t route_ps(const Topology& topology, const std::vector<Rank>& job, Rank from, Rank to) {
  std::int64_t direct = topology.route(from, to).latency_ps;
  if (topology.node_of(from) != topology.node_of(to)) return direct;
  return std::min(direct, least_latency_ps(topology, job, from, false) +
                              least_latency_ps(topology, job, to, true));
}

}  // namespace

std::int64_t latency_ps(const Topology& topology, const std::vector<Rank>& job,
                        const Items& items) {
  std::int64_t greatest = 0;
  for (Rank rank : job)
    if (in_bytes(items, {rank}) > 0)
      greatest = std::max(greatest, least_latency_ps(topology, job, rank, true));
  for (const Item& item : items.items)
    for (Rank needer : item.needers)
      for (const auto& [addend, ranks] : item.holders) {
        std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
        bool in_node = false;
        for (Rank holder : ranks) {
          nearest =
              std::min(nearest, holder == needer ? 0 : route_ps(topology, job, holder, needer));
          in_node = in_node || topology.node_of(holder) == topology.node_of(needer);
        }
        // Of several addends only those of other nodes are looked at.
        if (item.holders.size() == 1 || !in_node) greatest = std::max(greatest, nearest);
      }
  return greatest;
}

namespace {

// What one set holds: bit m is set where it holds the fold of the addends in the bits of m. A state
// is 8 bits per set.
using State = std::uint32_t;

std::uint32_t closed(std::uint32_t held) {
  for (std::uint32_t before = 0; before != held;) {
    before = held;
    for (std::uint32_t a = 1; a < 8; ++a)
      for (std::uint32_t b = a + 1; b < 8; ++b)
        if ((a & b) == 0 && (held >> a & 1) != 0 && (held >> b & 1) != 0) held |= 1u << (a | b);
  }
  return held;
}

// The cheapest way to what is asked for of one item, where `place_of` says who holds together and
// `price` what a transfer between two places costs: all ways, the cheapest first.
template <typename Price>
std::int64_t least_cost(const Item& item, const std::vector<Rank>& job,
                        const std::vector<std::int32_t>& place_of, const Price& price) {
  auto place = [&](Rank rank) {
    return static_cast<std::uint32_t>(place_of[static_cast<std::size_t>(
        std::lower_bound(job.begin(), job.end(), rank) - job.begin())]);
  };
  State start = 0;
  std::uint32_t addend_bit = 1;
  for (const auto& [addend, ranks] : item.holders) {
    for (Rank rank : ranks) start |= 1u << (8 * place(rank) + addend_bit);
    addend_bit *= 2;
  }
  std::uint32_t whole = addend_bit - 1;
  auto part = [](State state, std::uint32_t set) { return state >> (8 * set) & 0xff; };
  auto settled = [&](State state) {
    State out = 0;
    for (std::uint32_t set = 0; set < 4; ++set) out |= closed(part(state, set)) << (8 * set);
    return out;
  };
  auto done = [&](State state) {
    return std::all_of(item.needers.begin(), item.needers.end(),
                       [&](Rank rank) { return (part(state, place(rank)) >> whole & 1) != 0; });
  };
  std::set<std::pair<std::int64_t, State>> open{{0, settled(start)}};
  std::set<State> seen;
  for (;;) {
    auto [cost, state] = *open.begin();
    open.erase(open.begin());
    if (done(state)) return cost;
    if (!seen.insert(state).second) continue;
    for (std::uint32_t to = 0; to < 4; ++to)
      for (std::uint32_t from = 0; from < 4; ++from)
        for (std::uint32_t mask = 1; mask < 8; ++mask) {
          if (from == to || (part(state, from) >> mask & 1) == 0 ||
              (part(state, to) >> mask & 1) != 0)
            continue;
          State reached = settled(state | 1u << (8 * to + mask));
          if (!seen.contains(reached)) open.insert({cost + price(from, to), reached});
        }
  }
}

}  // namespace

std::int64_t fewest_receipts(const Items& items, const std::vector<Rank>& job,
                             const std::vector<std::int32_t>& set_of) {
  return least_cost(items.items.front(), job, set_of, [](auto, auto) { return 1; });
}

std::int64_t cheapest_receipts(const Items& items, const std::vector<Rank>& job,
                               const std::vector<std::int32_t>& set_of, std::int64_t inside,
                               std::int64_t between) {
  // Places are ranks; those beyond the job hold nothing and get nothing.
  std::vector<std::int32_t> places;
  for (std::size_t i = 0; i < job.size(); ++i) places.push_back(static_cast<std::int32_t>(i));
  constexpr std::int64_t kNever = 1'000'000;
  return least_cost(items.items.front(), job, places, [&](std::uint32_t from, std::uint32_t to) {
    if (from >= job.size() || to >= job.size()) return kNever;
    return set_of[from] == set_of[to] ? inside : between;
  });
}

}  // namespace reshard::test
