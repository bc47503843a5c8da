// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/joint/prices.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <tuple>

namespace reshard {
namespace {

constexpr std::size_t kMostCombinations = 8;

}  // namespace

PricedRoutes::PricedRoutes(const Topology& topology, const std::vector<Rank>& ranks,
                           Reducing switches)
    : ranks_(ranks.size()),
      all_(ranks_ == JointCount::kMostRanks ? ~RankMask{0} : bit(ranks_) - 1) {
  for_each_node(topology, ranks, [this](auto, std::size_t first, std::span<const Rank> here) {
    nodes_.push_back((here.size() == JointCount::kMostRanks ? all_ : bit(here.size()) - 1)
                     << first);
  });
  show_transfers_ = !switches.network;
  std::map<const RouteRule*, Bundle> by_rule;
  std::map<std::tuple<const RouteRule*, std::int32_t, std::int32_t>, Bundle> by_nodes;
  for (std::uint32_t source = 0; source < ranks_; ++source)
    for (std::uint32_t destination = 0; destination < ranks_; ++destination) {
      if (source == destination) continue;
      Rank from = ranks[source], to = ranks[destination];
      const RouteRule& rule = topology.rule(from, to);
      std::int32_t source_node = topology.node_of(from), node = topology.node_of(to);
      Way way{source, destination, rule.latency_ps, {}};
      bool multicast = switches.nvlink && source_node == node;
      for (const Hop& hop : rule.hops)
        if (!multicast || hop.kind == Hop::Kind::DestinationIn)
          way.resources.push_back(number_of(topology, topology.resource(hop, from, to)));
      show_transfers_ = show_transfers_ && !way.resources.empty();
      auto number = static_cast<std::uint32_t>(ways_.size());
      by_rule[&rule].push_back(number);
      by_nodes[{&rule, source_node, node}].push_back(number);
      ways_.push_back(std::move(way));
    }
  for (auto& entry : by_rule) by_rule_.push_back(std::move(entry.second));
  for (auto& entry : by_nodes) by_nodes_.push_back(std::move(entry.second));
  // In the order of their first ways, not of addresses.
  std::sort(by_rule_.begin(), by_rule_.end());
  std::sort(by_nodes_.begin(), by_nodes_.end());
}

std::uint32_t PricedRoutes::number_of(const Topology& topology, ResourceId id) {
  auto [at, is_new] = numbers_.try_emplace(id, static_cast<std::uint32_t>(bytes_per_s_.size()));
  if (is_new) bytes_per_s_.push_back(topology.resource_bytes_per_s(id));
  return at->second;
}

Int128 PricedRoutes::price_of(const Prices& prices) const {
  Int128 sum = 0;
  for (std::size_t r = 0; r < prices.size(); ++r) sum += Int128{bytes_per_s_[r]} * prices[r];
  return sum;
}

void PricedRoutes::pay(Prices& prices, const Bundle& bundle, std::size_t hop,
                       const std::vector<std::int32_t>& owed) const {
  for (std::uint32_t way : bundle) {
    std::int32_t& price = prices[ways_[way].resources[hop]];
    price = std::max(price, owed[way]);
  }
}

// Each bundle at the hop that adds the least to the price of all.
Prices PricedRoutes::cheapest(const std::vector<Bundle>& bundles,
                              const std::vector<std::int32_t>& owed) const {
  Prices prices(resources(), 0);
  for (const Bundle& bundle : bundles) {
    std::optional<Prices> best;
    for (std::size_t hop = 0; hop < hops(bundle); ++hop) {
      Prices tried = prices;
      pay(tried, bundle, hop, owed);
      if (!best || price_of(tried) < price_of(*best)) best = std::move(tried);
    }
    prices = *std::move(best);
  }
  return prices;
}

std::vector<Prices> PricedRoutes::into(std::span<const RankMask> sets, std::int32_t most) const {
  std::vector<std::int32_t> owed(ways_.size(), 0);
  for (std::size_t w = 0; w < ways_.size(); ++w)
    for (RankMask set : sets)
      if ((set >> ways_[w].destination & 1) != 0 && (set >> ways_[w].source & 1) == 0 &&
          owed[w] < most)
        ++owed[w];
  std::vector<Prices> out{cheapest(by_nodes_, owed), cheapest(by_rule_, owed)};
  std::size_t combinations = 1;
  for (const Bundle& bundle : by_rule_) combinations *= std::min(hops(bundle), kMostCombinations);
  if (combinations > kMostCombinations) return out;
  out.pop_back();
  for (std::size_t number = 0; number < combinations; ++number) {
    out.emplace_back(resources(), 0);
    std::size_t rest = number;
    for (const Bundle& bundle : by_rule_) {
      pay(out.back(), bundle, rest % hops(bundle), owed);
      rest /= hops(bundle);
    }
  }
  return out;
}

std::vector<RankMask> PricedRoutes::paying(const Prices& prices) const {
  std::vector<RankMask> out;
  for (const Way& way : ways_) {
    std::size_t pays = 0;
    for (std::uint32_t resource : way.resources) pays += to_index(prices[resource]);
    if (pays * ranks_ > out.size()) out.resize(pays * ranks_, 0);
    for (std::size_t less = 0; less < pays; ++less)
      out[less * ranks_ + way.destination] |= bit(way.source);
  }
  return out;
}

Passage PricedRoutes::passage(const Prices& prices) const {
  Passage out{price_of(prices)};
  for (const Way& way : ways_)
    if (std::any_of(way.resources.begin(), way.resources.end(),
                    [&](std::uint32_t resource) { return prices[resource] > 0; }))
      out.latency_ps = std::min(out.latency_ps, way.latency_ps);
  return out;
}

Payments::Payments(const PricedRoutes& routes, const Prices& prices)
    : ranks_(routes.ranks()), all_(routes.all()), paying_(routes.paying(prices)), left_(paying_) {
  for (std::size_t rank = 0; rank < ranks_ && !paying_.empty(); ++rank)
    reached_from_.push_back(reaching(rank));
}

// All ranks with a way to this one over routes that have nothing left.
RankMask Payments::reaching(std::size_t rank) const {
  RankMask found = bit(rank);
  for (RankMask open = found; open != 0;) {
    auto at = static_cast<std::size_t>(std::countr_zero(open));
    RankMask more = all_ & ~left_[at] & ~found;
    found |= more;
    open = (open & (open - 1)) | more;
  }
  return found;
}

void Payments::pay_into(RankMask set) {
  for (RankMask rest = set; rest != 0; rest &= rest - 1)
    for (auto at = static_cast<std::size_t>(std::countr_zero(rest)); at < left_.size();
         at += ranks_) {
      RankMask more = at + ranks_ < left_.size() ? left_[at + ranks_] : 0;
      left_[at] = (left_[at] & set) | (more & ~set);
    }
}

std::int64_t Payments::least(const JointItem& item) {
  if (paying_.empty()) return 0;
  // Needers that are not reached, and the ranks from which they are.
  std::array<std::pair<RankMask, std::size_t>, JointCount::kMostRanks> waiting;
  std::size_t count = 0;
  for (RankMask rest = item.needers; rest != 0; rest &= rest - 1) {
    auto rank = static_cast<std::size_t>(std::countr_zero(rest));
    if ((reached_from_[rank] & item.holders) == 0) waiting[count++] = {reached_from_[rank], rank};
  }
  if (count <= 1 && paying_.size() == ranks_) return static_cast<std::int64_t>(count);
  std::int64_t paid = 0;
  for (; count > 0; ++paid) {
    auto begin = waiting.begin(), end = begin + static_cast<std::ptrdiff_t>(count);
    RankMask set = std::min_element(begin, end, [](const auto& a, const auto& b) {
                     return std::popcount(a.first) < std::popcount(b.first);
                   })->first;
    pay_into(set);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      auto [from, rank] = waiting[i];
      if ((from & set) != 0) from = reaching(rank);
      if ((from & item.holders) == 0) waiting[kept++] = {from, rank};
    }
    count = kept;
  }
  left_ = paying_;
  return paid;
}

}  // namespace reshard
