// SPDX-License-Identifier: BSD-3-Clause
// What elements pay at given prices of resources, and prices at which routes pay for the sets of
// ranks that they enter: joint.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/bounds/joint/joint.h"

namespace reshard {

// By resource, numbered from 0 as the job's routes name them.
using Prices = std::vector<std::int32_t>;

// The routes between a job's ranks.
class PricedRoutes {
 public:
  static constexpr std::int32_t kMostPrice = 7;

  // At most JointCount::kMostRanks ranks, ascending.
  PricedRoutes(const Topology& topology, const std::vector<Rank>& ranks, Reducing switches);

  // Whether every transfer pays for itself. Where switches inside a node multicast, it pays only at
  // the port where it comes in; where those of the network do, it may not pay at all.
  bool show_transfers() const { return show_transfers_; }
  std::size_t ranks() const { return ranks_; }
  std::size_t resources() const { return bytes_per_s_.size(); }
  // Ranks of each node, ascending by node.
  const std::vector<RankMask>& nodes() const { return nodes_; }
  RankMask all() const { return all_; }

  // Prices at which every route pays as much as the number of `sets` that it enters, or `most` if
  // that is less: every rule at one hop, in all combinations unless these are many, and every rule
  // at the hop with the least capacity, from one node to another.
  std::vector<Prices> into(std::span<const RankMask> sets, std::int32_t most) const;

  // [(p - 1) x ranks + r]: ranks with routes to r that pay p or more; empty if nothing has a price.
  std::vector<RankMask> paying(const Prices& prices) const;
  // In price x bytes per second; 0 if all prices are.
  Passage passage(const Prices& prices) const;

 private:
  struct Way {
    std::uint32_t source, destination;
    std::int64_t latency_ps;
    std::vector<std::uint32_t> resources;  // where it can pay, in order
  };
  using Bundle = std::vector<std::uint32_t>;  // numbers of ways, all of one rule

  std::uint32_t number_of(const Topology& topology, ResourceId id);
  std::size_t hops(const Bundle& bundle) const { return ways_[bundle.front()].resources.size(); }
  Int128 price_of(const Prices& prices) const;
  void pay(Prices& prices, const Bundle& bundle, std::size_t hop,
           const std::vector<std::int32_t>& owed) const;
  Prices cheapest(const std::vector<Bundle>& bundles, const std::vector<std::int32_t>& owed) const;

  std::size_t ranks_;
  RankMask all_;
  bool show_transfers_ = true;
  std::map<ResourceId, std::uint32_t> numbers_;
  std::vector<std::int64_t> bytes_per_s_;
  std::vector<RankMask> nodes_;
  std::vector<Way> ways_;
  std::vector<Bundle> by_rule_, by_nodes_;  // by rule; by rule and the nodes at its ends
};

// What elements pay at the same prices.
class Payments {
 public:
  Payments(const PricedRoutes& routes, const Prices& prices);

  // One element pays at least so much: the number of sets found.
  std::int64_t least(const JointItem& item);

 private:
  RankMask reaching(std::size_t rank) const;
  void pay_into(RankMask set);

  std::size_t ranks_;
  RankMask all_;
  std::vector<RankMask> paying_, left_;  // see PricedRoutes::paying()
  std::vector<RankMask> reached_from_;   // by rank, before anything is paid
};

}  // namespace reshard
