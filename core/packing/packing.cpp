// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/packing.h"

#include <algorithm>
#include <tuple>

#include "core/base/disjoint_sets.h"
#include "core/base/integers.h"
#include "core/packing/fewer_trees.h"
#include "core/packing/path_search.h"

namespace reshard {
namespace {

// Limits per granule if many nodes could fold: roots tried, and nodes that fold for themselves.
constexpr std::size_t kMostRoots = 12, kMostFoldingNodes = 4;

// Finds the tree of one granule and adds its loads.
class TreeGrower {
 public:
  TreeGrower(const RankRoutes& routes, Loads& loads)
      : routes_(routes),
        loads_(loads),
        search_(routes),
        depth_(routes.ranks(), 0),
        wanted_(routes.ranks(), false) {}

  // `most`: of the price that the permille are of.
  void set_latency(std::int64_t permille, Price most) {
    latency_permille_ = permille;
    latency_of_ = most;
  }

  std::vector<Branch> grow(const Commodity& commodity, std::int64_t bytes) {
    bytes_ = bytes;
    search_.set_latency_price(static_cast<Price>(std::min<Int128>(
        Int128{std::min(loads_.top(), latency_of_)} * latency_permille_ / 1000, Int128{1} << 58)));
    if (!commodity.folds()) {
      std::vector<Branch> one(1);
      one[0].out.reserve(commodity.needers.size());
      reach(one[0], commodity.holders[0], commodity.needers);
      return one;
    }
    return grow_folds(commodity);
  }

  void carry(const Branch& branch, bool release) {
    for (const std::vector<TreeHop>* hops : {&branch.in, &branch.out})
      for (const TreeHop& hop : *hops) carry(hop, release);
  }
  void carry(const std::vector<Branch>& branches, std::int64_t bytes, bool release) {
    bytes_ = bytes;
    for (const Branch& branch : branches) carry(branch, release);
  }

 private:
  // Returns the price of the hop, then adds its load.
  Price pay(const TreeHop& hop) {
    Price price = 0;
    routes_.for_each_class(hop.from, hop.to, [&](std::int32_t resource_class) {
      price += loads_.price(resource_class);
      loads_.carry(resource_class, bytes_);
    });
    return price;
  }
  void carry(const TreeHop& hop, bool release) {
    routes_.for_each_class(hop.from, hop.to, [&](std::int32_t resource_class) {
      release ? loads_.release(resource_class, bytes_) : loads_.carry(resource_class, bytes_);
    });
  }
  void start_at(Slot slot) {
    depth_[to_index(slot)] = 0;
    search_.add(slot, 0);
  }
  // Adds `slot` to the set, reached from `parent`, which is in the set.
  void hang(Slot slot, Slot parent, Direction direction) {
    std::int32_t trunk = direction == Direction::Outwards ? routes_.trunk(parent, slot)
                                                          : routes_.trunk(slot, parent);
    depth_[to_index(slot)] = depth_[to_index(parent)] + search_.latency_price(trunk);
    search_.add(slot, depth_[to_index(slot)]);
  }

  // The ranks on the path from the set to `slot`; the first is in the set.
  const std::vector<Slot>& path_to(Slot slot) {
    path_.clear();
    for (Slot at = slot; at >= 0; at = search_.before(at)) path_.push_back(at);
    std::reverse(path_.begin(), path_.end());
    return path_;
  }

  // Extends the branch from the set to all needers. Returns the price paid.
  Price reach(Branch& branch, const std::vector<Slot>& set, const std::vector<Slot>& needers) {
    search_.clear();
    for (Slot slot : set) start_at(slot);
    std::vector<Slot>& left = left_;
    left.clear();
    for (Slot slot : needers)
      if (std::find(set.begin(), set.end(), slot) == set.end()) left.push_back(slot);
    for (Slot slot : left) search_.set_wanted(slot, true);
    Price paid = 0;
    while (!left.empty()) {
      search_.run(loads_, Direction::Outwards);
      // The first of several that cost the same: they ascend.
      Slot nearest = *std::ranges::min_element(left, {}, [&](Slot at) { return search_.cost(at); });
      const std::vector<Slot>& path = path_to(nearest);
      for (std::size_t i = 1; i < path.size(); ++i) {
        branch.out.push_back({path[i - 1], path[i]});
        paid += pay(branch.out.back());
        hang(path[i], path[i - 1], Direction::Outwards);
        search_.set_wanted(path[i], false);
        left.erase(std::remove(left.begin(), left.end(), path[i]), left.end());
      }
    }
    return paid;
  }

  // Adds paths from one holder of every addend to the root; hops are found from the root outwards.
  // Returns the price paid.
  Price gather(Branch& branch, const Commodity& commodity) {
    search_.clear();
    start_at(branch.root);
    std::vector<const std::vector<Slot>*> left;
    for (const std::vector<Slot>& holders : commodity.holders) left.push_back(&holders);
    auto found = [&](Slot slot) {
      auto at = std::find_if(left.begin(), left.end(), [&](const std::vector<Slot>* holders) {
        return std::binary_search(holders->begin(), holders->end(), slot);
      });
      if (at == left.end()) return;
      for (Slot holder : **at) search_.set_wanted(holder, false);
      left.erase(at);
      branch.contributors.push_back(slot);
    };
    found(branch.root);
    Price paid = 0;
    while (!left.empty()) {
      for (const std::vector<Slot>* holders : left)
        for (Slot slot : *holders) search_.set_wanted(slot, true);
      search_.run(loads_, Direction::Inwards);
      Slot nearest = -1;
      for (const std::vector<Slot>* holders : left)
        for (Slot slot : *holders)
          if (nearest < 0 ||
              std::pair(search_.cost(slot), slot) < std::pair(search_.cost(nearest), nearest))
            nearest = slot;
      const std::vector<Slot>& path = path_to(nearest);
      for (std::size_t i = 1; i < path.size(); ++i) {
        branch.in.push_back({path[i], path[i - 1]});
        paid += pay(branch.in.back());
        hang(path[i], path[i - 1], Direction::Inwards);
        found(path[i]);
      }
    }
    std::reverse(branch.in.begin(), branch.in.end());
    std::sort(branch.contributors.begin(), branch.contributors.end());
    return paid;
  }

  struct Grown {
    Price paid = kUnreached;
    std::vector<Branch> branches;
  };
  // Releases the loads that it adds.
  Grown try_root(const Commodity& commodity, Slot root, const std::vector<Slot>& needers) {
    Grown grown{0, {Branch{root, {}, {}, {}}}};
    Branch& branch = grown.branches[0];
    grown.paid = gather(branch, commodity);  // first: reaching depends on its loads
    grown.paid += reach(branch, {root}, needers);
    carry(branch, true);
    return grown;
  }
  Grown best_root(const Commodity& commodity, const std::vector<Slot>& roots,
                  const std::vector<Slot>& needers) {
    Grown best;
    for (Slot root : roots) {
      Grown grown = try_root(commodity, root, needers);
      if (grown.paid < best.paid) best = std::move(grown);
    }
    for (const Branch& branch : best.branches) carry(branch, false);
    return best;
  }

  // Per node, the cheapest rank that both needs and holds, that only needs, and that only holds.
  std::vector<Slot> roots_of(const Commodity& commodity) {
    std::vector<std::vector<std::pair<Price, Slot>>> best;  // by node
    auto offer = [&](Slot slot, std::size_t kind) {
      auto node = to_index(routes_.node_of(slot));
      if (best.size() <= node) best.resize(node + 1);
      best[node].resize(3, {kUnreached, -1});
      Price price = 0;
      for (const RankRoutes::AccessLink& link : routes_.down_to(slot))
        price += loads_.price(link.classes);
      for (const RankRoutes::AccessLink& link : routes_.up_from(slot))
        price += loads_.price(link.classes);
      best[node][kind] = std::min(best[node][kind], std::pair(price, slot));
    };
    std::vector<Slot>& holders = held_;
    holders.clear();
    for (const std::vector<Slot>& list : commodity.holders)
      holders.insert(holders.end(), list.begin(), list.end());
    std::sort(holders.begin(), holders.end());
    for (Slot slot : commodity.needers) {
      bool holds = std::binary_search(holders.begin(), holders.end(), slot);
      offer(slot, holds ? 0 : 1);
      wanted_[to_index(slot)] = true;
    }
    for (Slot slot : holders)
      if (!wanted_[to_index(slot)]) offer(slot, 2);
    for (Slot slot : commodity.needers) wanted_[to_index(slot)] = false;
    std::vector<std::pair<Price, Slot>> found;
    for (const auto& kinds : best)
      for (const auto& root : kinds)
        if (root.second >= 0) found.push_back(root);
    if (found.size() > kMostRoots) {
      std::sort(found.begin(), found.end());
      found.resize(kMostRoots);
    }
    std::vector<Slot> out;
    for (const auto& [price, slot] : found) out.push_back(slot);
    return out;
  }

  // Whether the branch passes no rank of `all` other than `needers`: those get it from their own
  // branches.
  static bool keeps_to(const std::vector<Slot>& needers, const std::vector<Slot>& all,
                       const Branch& branch) {
    auto is_in = [](const std::vector<Slot>& slots, Slot slot) {
      return std::binary_search(slots.begin(), slots.end(), slot);
    };
    return std::none_of(branch.out.begin(), branch.out.end(), [&](const TreeHop& hop) {
      return is_in(all, hop.to) && !is_in(needers, hop.to);
    });
  }

  std::vector<Branch> grow_folds(const Commodity& commodity) {
    std::vector<Slot> roots = roots_of(commodity);
    Grown one = best_root(commodity, roots, commodity.needers);
    std::vector<std::vector<Slot>> by_node;
    for (Slot slot : commodity.needers) {
      auto node = to_index(routes_.node_of(slot));
      if (by_node.size() <= node) by_node.resize(node + 1);
      by_node[node].push_back(slot);
    }
    std::erase_if(by_node, [](const std::vector<Slot>& needers) { return needers.empty(); });
    if (by_node.size() < 2 || by_node.size() > kMostFoldingNodes) return one.branches;
    carry(one.branches[0], true);
    Grown each{0, {}};
    bool apart = true;
    for (const std::vector<Slot>& needers : by_node) {
      std::vector<Slot> here;
      for (Slot root : roots)
        if (routes_.node_of(root) == routes_.node_of(needers[0])) here.push_back(root);
      if (here.empty()) here.push_back(needers[0]);
      Grown branch = best_root(commodity, here, needers);
      each.paid += branch.paid;
      each.branches.push_back(std::move(branch.branches[0]));
      apart = apart && keeps_to(needers, commodity.needers, each.branches.back());
    }
    if (apart && each.paid < one.paid) return each.branches;
    for (const Branch& branch : each.branches) carry(branch, true);
    carry(one.branches[0], false);
    return one.branches;
  }

  const RankRoutes& routes_;
  Loads& loads_;
  PathSearch search_;
  std::int64_t latency_permille_ = 0;
  Price latency_of_ = kUnreached;
  std::int64_t bytes_ = 0;
  std::vector<Price> depth_;  // by slot: price of the latencies from the set
  std::vector<bool> wanted_;  // by slot
  std::vector<Slot> left_, path_, held_;
};

// One granule, or some of a commodity that share a tree.
struct Granule {
  std::int32_t commodity, count;
  std::int64_t bytes;  // of one copy
  std::vector<Branch> branches;
};

// Per commodity, the number of symmetries that map it to itself, and whether it is the first of its
// orbit.
struct Orbits {
  std::vector<std::int64_t> stabilizer;
  std::vector<bool> first;
};

Orbits orbits_of(const Symmetry& symmetry, std::size_t commodities) {
  DisjointSets orbits(commodities);
  for (const Symmetry::Generator& generator : symmetry.generators())
    for (std::size_t i = 0; i < commodities; ++i) orbits.join(i, to_index(generator.commodity[i]));
  std::vector<std::int64_t> size(commodities, 0);
  for (std::size_t i = 0; i < commodities; ++i) ++size[orbits.first(i)];
  Orbits out;
  for (std::size_t i = 0; i < commodities; ++i) {
    out.stabilizer.push_back(symmetry.size() / size[orbits.first(i)]);
    out.first.push_back(orbits.first(i) == i);
  }
  return out;
}

// Cuts the first commodity of every orbit into granules, in proportion to its orbit's bytes, and
// lists one granule of each in turn.
std::vector<Granule> granules_of(const Commodities& commodities, const Orbits& orbits,
                                 const PackingOptions& options, Packing& out) {
  Int128 total = 0;
  for (std::size_t i = 0; i < commodities.list().size(); ++i)
    if (orbits.first[i]) total += ceil_div(commodities.list()[i].bytes, orbits.stabilizer[i]);
  out.granules.assign(commodities.list().size(), 0);
  std::int32_t most = 0;
  for (std::size_t i = 0; i < commodities.list().size(); ++i) {
    if (!orbits.first[i]) continue;
    Int128 share = ceil_div(commodities.list()[i].bytes, orbits.stabilizer[i]);
    out.granules[i] =
        static_cast<std::int32_t>(std::max<Int128>(1, ceil_div(share * options.granules, total)));
    most = std::max(most, out.granules[i]);
  }
  std::vector<Granule> granules;
  for (std::vector<std::int32_t> left = out.granules; most > 0;) {
    most = 0;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) continue;
      std::int32_t count = std::min((left[i] + 1) / 2, options.together);
      std::int64_t bytes =
          ceil_div(commodities.list()[i].bytes, out.granules[i] * orbits.stabilizer[i]);
      granules.push_back({static_cast<std::int32_t>(i), count, count * bytes, {}});
      most = std::max(most, left[i] -= count);
    }
  }
  return granules;
}

// Merges granules of one commodity that have the same tree.
std::vector<PackedTree> merged(std::vector<Granule> granules) {
  std::sort(granules.begin(), granules.end(), [](const Granule& a, const Granule& b) {
    return std::tie(a.commodity, a.branches) < std::tie(b.commodity, b.branches);
  });
  std::vector<PackedTree> trees;
  for (Granule& granule : granules) {
    if (!trees.empty() && trees.back().commodity == granule.commodity &&
        trees.back().branches == granule.branches)
      trees.back().granules += granule.count;
    else
      trees.push_back({granule.commodity, granule.count, std::move(granule.branches)});
  }
  return trees;
}

}  // namespace

Packing pack(const Commodities& commodities, const RankRoutes& routes, const Symmetry& symmetry,
             const PackingOptions& options) {
  Packing out;
  Orbits orbits = orbits_of(symmetry, commodities.list().size());
  std::vector<Granule> granules = granules_of(commodities, orbits, options, out), best = granules;
  bool are_best = false;  // `granules`; otherwise `best`
  out.stabilizer = std::move(orbits.stabilizer);
  Loads loads(routes, symmetry.size(), options.target_ps);
  TreeGrower grower(routes, loads);
  std::int64_t latency_permille = options.latency_permille;
  auto grow_all = [&] {
    grower.set_latency(latency_permille, options.latency_of_full ? loads.full() : kUnreached);
    for (std::size_t i = 0; i < granules.size(); ++i) {
      Granule& granule = granules[i];
      grower.carry(granule.branches, granule.bytes, true);  // none in the first round
      if (are_best) best[i].branches = std::move(granule.branches);
      granule.branches =
          grower.grow(commodities.list()[to_index(granule.commodity)], granule.bytes);
    }
    are_best = false;
  };
  auto keep = [&] {
    are_best = true;
    out.time_ps = loads.time_ps();
    out.busiest = loads.busiest();
  };
  for (int round = 0; round < options.rounds; ++round) {
    grow_all();
    // Later rounds spread what is not scarce better.
    Int128 worth = options.together > 1 ? Int128{out.time_ps} * 1001 / 1000 : out.time_ps - 1;
    if (round == 0 || loads.time_ps() <= worth) keep();
  }
  Int128 limit = Int128{std::max(out.time_ps, options.target_ps)} * 101 / 100;
  for (int round = 0; round < options.shallower_rounds; ++round) {
    latency_permille *= 2;
    grow_all();
    if (loads.time_ps() > limit) break;
    keep();
  }
  out.trees = merged(std::move(are_best ? granules : best));
  if (options.fewer_trees_permille > 0) {
    Loads fewer(routes, symmetry.size(), options.target_ps);
    give_up_trees(out, commodities, routes, fewer,
                  out.time_ps / 1000 * options.fewer_trees_permille);
  }
  return out;
}

}  // namespace reshard
