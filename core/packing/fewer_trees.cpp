// SPDX-License-Identifier: BSD-3-Clause
#include "core/packing/fewer_trees.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/integers.h"

namespace reshard {
namespace {

class TreeMerger {
 public:
  TreeMerger(Packing& packing, const Commodities& commodities, const RankRoutes& routes,
             Loads& loads, std::int64_t limit_ps)
      : packing_(packing), commodities_(commodities), routes_(routes), loads_(loads) {
    for (const PackedTree& tree : packing.trees) carry(tree, tree.granules);
    for (std::int32_t at = 0; at < std::ssize(routes.classes()); ++at)
      limits_.push_back(std::max(loads.load(at), loads.load_at(limit_ps)));
  }

  void run() {
    std::vector<PackedTree>& trees = packing_.trees;
    std::vector<std::size_t> order(trees.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return trees[a].granules < trees[b].granules;
    });
    for (std::size_t tree : order) give_up(tree);
    std::erase_if(trees, [](const PackedTree& tree) { return tree.granules == 0; });
  }

 private:
  // Calls visit(resource class) for everything that the tree crosses, hop by hop.
  template <class Visit>
  void for_each_class(const PackedTree& tree, Visit&& visit) const {
    for (const Branch& branch : tree.branches)
      for (const std::vector<TreeHop>* hops : {&branch.in, &branch.out})
        for (const TreeHop& hop : *hops) routes_.for_each_class(hop.from, hop.to, visit);
  }
  std::int64_t bytes(const PackedTree& tree, std::int32_t granules) const {
    const auto of = to_index(tree.commodity);
    return granules *
           ceil_div(commodities_.list()[of].bytes, packing_.granules[of] * packing_.stabilizer[of]);
  }
  void carry(const PackedTree& tree, std::int32_t granules) {
    for_each_class(tree, [&](std::int32_t resource_class) {
      loads_.carry(resource_class, bytes(tree, granules));
    });
  }
  void release(const PackedTree& tree, std::int32_t granules) {
    for_each_class(tree, [&](std::int32_t resource_class) {
      loads_.release(resource_class, bytes(tree, granules));
    });
  }
  Price price(const PackedTree& tree) const {
    Price sum = 0;
    for_each_class(tree, [&](std::int32_t resource_class) { sum += loads_.price(resource_class); });
    return sum;
  }
  bool fits(const PackedTree& tree) const {
    bool fits = true;
    for_each_class(tree, [&](std::int32_t resource_class) {
      fits = fits && loads_.load(resource_class) <= limits_[to_index(resource_class)];
    });
    return fits;
  }

  // All granules of the tree to others, or none.
  void give_up(std::size_t tree) {
    PackedTree& own = packing_.trees[tree];
    std::vector<std::size_t> others;
    auto [first, last] = std::equal_range(
        packing_.trees.begin(), packing_.trees.end(), own,
        [](const PackedTree& a, const PackedTree& b) { return a.commodity < b.commodity; });
    for (auto at = first; at != last; ++at)
      if (&*at != &own && at->granules > 0)
        others.push_back(static_cast<std::size_t>(at - packing_.trees.begin()));
    release(own, own.granules);
    std::vector<std::size_t> taken;
    while (std::ssize(taken) < own.granules) {
      std::optional<std::size_t> taker = taker_of(others);
      if (!taker) break;
      taken.push_back(*taker);
    }
    if (std::ssize(taken) < own.granules) {
      for (std::size_t taker : taken) release(packing_.trees[taker], 1);
      return carry(own, own.granules);
    }
    for (std::size_t taker : taken) ++packing_.trees[taker].granules;
    own.granules = 0;
  }

  // The cheapest tree that can carry another granule, which it then does.
  std::optional<std::size_t> taker_of(const std::vector<std::size_t>& trees) {
    std::vector<std::pair<Price, std::size_t>> by_price;
    for (std::size_t tree : trees) by_price.emplace_back(price(packing_.trees[tree]), tree);
    std::sort(by_price.begin(), by_price.end());
    for (const auto& [price, tree] : by_price) {
      carry(packing_.trees[tree], 1);
      if (fits(packing_.trees[tree])) return tree;
      release(packing_.trees[tree], 1);
    }
    return std::nullopt;
  }

  Packing& packing_;
  const Commodities& commodities_;
  const RankRoutes& routes_;
  Loads& loads_;
  std::vector<std::int64_t> limits_;  // by resource class
};

}  // namespace

void give_up_trees(Packing& packing, const Commodities& commodities, const RankRoutes& routes,
                   Loads& loads, std::int64_t limit_ps) {
  TreeMerger(packing, commodities, routes, loads, limit_ps).run();
  packing.time_ps = loads.time_ps();
  packing.busiest = loads.busiest();
}

}  // namespace reshard
