// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/joint/joint.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <tuple>

#include "core/bounds/joint/prices.h"

namespace reshard {
namespace {

using Sets = std::vector<RankMask>;  // ascending, each once

constexpr std::size_t kStarts = 3;           // of the search: the best of the first choices
constexpr std::size_t kMostHolders = 32;     // lists of holders that are looked at
constexpr std::int64_t kMostWork = 1 << 24;  // about 20 ms

template <class Visit>
void for_each_rank(RankMask ranks, const Visit& visit) {
  for (; ranks != 0; ranks &= ranks - 1) visit(static_cast<std::size_t>(std::countr_zero(ranks)));
}

// The sets of ranks that the search adds and drops together.
class Choices {
 public:
  Choices(const std::vector<JointItem>& items, const PricedRoutes& routes)
      : items_(items), routes_(routes), lacks_(routes.ranks(), 0) {
    for (const JointItem& item : items)
      for_each_rank(item.needers, [&](std::size_t rank) { lacks_[rank] += item.bytes; });
    single_sets();
    for (RankMask node : routes.nodes()) {
      lacking_most(node);
      holding_most(node);
    }
  }
  const std::vector<Sets>& all() const { return all_; }

 private:
  void add(Sets sets) {
    auto is_none = [&](RankMask set) { return set == 0 || set == routes_.all(); };
    sets.erase(std::remove_if(sets.begin(), sets.end(), is_none), sets.end());
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    if (!sets.empty() && known_.insert(sets).second) all_.push_back(std::move(sets));
  }

  void single_sets() {
    for (RankMask node : routes_.nodes()) {
      for_each_rank(node, [&](std::size_t rank) {
        for (RankMask set : {bit(rank), node & ~bit(rank)}) {
          add({set});
          add({routes_.all() & ~set});
        }
      });
      add({node});
      add({routes_.all() & ~node});
    }
    std::map<RankMask, Int128> held;
    for (const JointItem& item : items_) held[item.holders] += item.bytes;
    std::vector<std::pair<Int128, RankMask>> most;
    for (auto [holders, bytes] : held) most.push_back({bytes, holders});
    std::sort(most.rbegin(), most.rend());
    if (most.size() > kMostHolders) most.resize(kMostHolders);
    for (auto [bytes, holders] : most) add({routes_.all() & ~holders});
  }

  // Calls visit(ranks of the node that have so many bytes or more) for all numbers above 0.
  template <class Visit>
  static void by_bytes(RankMask node, const std::vector<Int128>& bytes, const Visit& visit) {
    std::set<Int128> numbers;
    for_each_rank(node, [&](std::size_t rank) { numbers.insert(bytes[rank]); });
    for (Int128 number : numbers) {
      if (number == 0) continue;
      RankMask ranks = 0;
      for_each_rank(node, [&](std::size_t rank) {
        if (bytes[rank] >= number) ranks |= bit(rank);
      });
      visit(ranks);
    }
  }

  // The ranks that lack most, in all and of what their node has: each alone and with all other
  // nodes, and together.
  void lacking_most(RankMask node) {
    std::vector<Int128> near(routes_.ranks(), 0);
    for (const JointItem& item : items_)
      if ((item.holders & node) != 0)
        for_each_rank(item.needers & node, [&](std::size_t rank) { near[rank] += item.bytes; });
    for (const std::vector<Int128>* bytes : {&lacks_, &near})
      by_bytes(node, *bytes, [&](RankMask ranks) {
        Sets alone, with_others;
        for_each_rank(ranks, [&](std::size_t rank) {
          alone.push_back(bit(rank));
          with_others.push_back((routes_.all() & ~node) | bit(rank));
        });
        add(std::move(alone));
        add(std::move(with_others));
        for (RankMask set : {ranks, node & ~ranks}) {
          add({set});
          add({routes_.all() & ~set});
        }
      });
  }

  // The node's ranks together with those that hold what it lacks, alone and with each of these.
  void holding_most(RankMask node) {
    std::vector<Int128> owes(routes_.ranks(), 0);
    for (const JointItem& item : items_)
      if ((item.needers & node) != 0)
        for_each_rank(item.holders & node, [&](std::size_t rank) { owes[rank] += item.bytes; });
    by_bytes(node, owes, [&](RankMask ranks) {
      RankMask others = node & ~ranks;
      Sets sets{others};
      for_each_rank(ranks, [&](std::size_t rank) {
        if (lacks_[rank] > 0) sets.push_back(others | bit(rank));
      });
      add(std::move(sets));
    });
  }

  const std::vector<JointItem>& items_;
  const PricedRoutes& routes_;
  std::vector<Int128> lacks_;  // bytes, by rank
  std::vector<Sets> all_;
  std::set<Sets> known_;
};

class JointSearch {
 public:
  JointSearch(const std::vector<JointItem>& items, const PricedRoutes& routes)
      : items_(items), routes_(routes) {}

  std::int64_t bound_ps() {
    Choices choices(items_, routes_);
    // If values are equal, that of more sets counts as greater.
    std::vector<std::tuple<double, std::size_t, std::size_t>> values;
    for (std::size_t c = 0; c < choices.all().size(); ++c)
      values.push_back({value_of(choices.all()[c]), choices.all()[c].size(), c});
    std::sort(values.rbegin(), values.rend());
    for (std::size_t s = 0; s < std::min(kStarts, values.size()); ++s) {
      Sets sets = climbed(choices, choices.all()[std::get<2>(values[s])]);
      // Other hops that are as good may leave more to change.
      double value = value_of(sets);
      for (Priced& priced : all_of(sets))
        if (!exceeds(value, priced.value)) change(std::move(priced));
    }
    if (best_.value == 0) return 0;
    return routes_.passage(best_.prices).least_ps(paid(best_.prices));
  }

 private:
  struct Priced {
    Prices prices;
    double value = 0;
  };

  Int128 paid(const Prices& prices) {
    Payments payments(routes_, prices);
    Int128 sum = 0;
    for (const JointItem& item : items_) sum += item.bytes * payments.least(item);
    auto ranks = static_cast<std::int64_t>(routes_.ranks());
    work_ += 4 * ranks * (ranks + std::ssize(items_));
    return sum;
  }

  double value_of(const Prices& prices) {
    auto [at, is_new] = known_.try_emplace(prices, 0.0);
    if (!is_new || work_ > kMostWork) return at->second;
    if (Int128 capacity = routes_.passage(prices).bytes_per_s; capacity > 0)
      at->second = static_cast<double>(paid(prices)) / static_cast<double>(capacity);
    if (at->second > best_.value) best_ = {prices, at->second};
    return at->second;
  }

  std::vector<Priced> all_of(const Sets& sets) {
    std::vector<Priced> out;
    if (work_ > kMostWork) return out;
    auto ranks = static_cast<std::int64_t>(routes_.ranks());
    work_ += 2 * ranks * ranks * (std::ssize(sets) + 16);
    for (std::int32_t most : {1, PricedRoutes::kMostPrice})
      for (Prices& prices : routes_.into(sets, most)) {
        double value = value_of(prices);
        out.push_back({std::move(prices), value});
      }
    return out;
  }

  double value_of(const Sets& sets) {
    double best = 0;
    for (const Priced& priced : all_of(sets)) best = std::max(best, priced.value);
    return best;
  }

  static bool exceeds(double value, double other) { return value > other * (1 + 1e-9); }

  // Adds or drops what helps most, as long as something does.
  Sets climbed(const Choices& choices, Sets sets) {
    double best = value_of(sets);
    for (bool better = true; better;) {
      better = false;
      Sets from = sets;
      for (const Sets& choice : choices.all()) {
        Sets tried;
        std::set_symmetric_difference(from.begin(), from.end(), choice.begin(), choice.end(),
                                      std::back_inserter(tried));
        double value = value_of(tried);
        if (!exceeds(value, best)) continue;
        best = value;
        sets = std::move(tried);
        better = true;
      }
    }
    return sets;
  }

  // The same with single prices.
  void change(Priced best) {
    for (bool better = true; better;) {
      Prices from = best.prices;
      better = false;
      for (std::size_t r = 0; r < from.size(); ++r)
        for (std::int32_t by : {-1, 1}) {
          std::int32_t price = from[r] + by;
          if (price < 0 || price > PricedRoutes::kMostPrice) continue;
          Priced tried{from};
          tried.prices[r] = price;
          tried.value = value_of(tried.prices);
          if (!exceeds(tried.value, best.value)) continue;
          best = std::move(tried);
          better = true;
        }
    }
  }

  const std::vector<JointItem>& items_;
  const PricedRoutes& routes_;
  std::map<Prices, double> known_;
  Priced best_;  // of all
  std::int64_t work_ = 0;
};

}  // namespace

RankMask JointCount::holders_of(std::span<const Member> members) {
  std::map<std::int64_t, RankMask> by_addend;
  for (const Member& member : members)
    by_addend[member.addend] |= bit(static_cast<std::size_t>(member.rank));
  RankMask fewest = 0;
  for (auto [addend, ranks] : by_addend)
    if (fewest == 0 || std::popcount(ranks) < std::popcount(fewest)) fewest = ranks;
  return fewest;
}

RankMask JointCount::needers_of(std::span<const Member> members) {
  RankMask ranks = 0;
  for (const Member& member : members) ranks |= bit(static_cast<std::size_t>(member.rank));
  return ranks;
}

void JointCount::add(RankMask holders, RankMask needers, Int128 bytes) {
  if ((needers & ~holders) == 0 || items_.size() > kMostItems) return;
  items_[{holders, needers & ~holders}] += bytes;
}

std::int64_t JointCount::bound_ps(const Topology& topology, const std::vector<Rank>& ranks,
                                  Reducing switches) const {
  if (items_.empty() || items_.size() > kMostItems) return 0;
  PricedRoutes routes(topology, ranks, switches);
  if (!routes.show_transfers()) return 0;
  std::vector<JointItem> items;
  for (const auto& [ends, bytes] : items_) items.push_back({ends.first, ends.second, bytes});
  return JointSearch(items, routes).bound_ps();
}

}  // namespace reshard
