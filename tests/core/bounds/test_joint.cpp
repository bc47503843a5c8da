// SPDX-License-Identifier: BSD-3-Clause
// What several sets of ranks must receive, against all ways and by hand.
#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/bounds/bounds.h"
#include "core/bounds/joint/joint.h"
#include "core/bounds/joint/prices.h"
#include "sim/machines/presets.h"
#include "tests/support/bounds_cases.h"
#include "tests/support/prng.h"

namespace reshard::test {
namespace {

std::vector<Rank> ranks_of(const std::string& text) { return parse_ranks(text, "ranks"); }

Request request_of(const char* type, const char* ranks, const char* from, const char* to_ranks,
                   const char* to) {
  auto mesh = [](const char* text) { return std::to_string(ranks_of(text).size()); };
  return parse_request({mesh(ranks), ranks, mesh(to_ranks), to_ranks, "1000000", type, from, to});
}

// What the cheapest tree from any holder to all needers pays: by the ranks that have the element,
// the cheapest first.
std::int64_t cheapest_tree(const JointItem& item, const std::vector<std::vector<int>>& price) {
  std::map<RankMask, std::int64_t> open{{item.holders, 0}}, done;
  while (!open.empty()) {
    auto next = std::min_element(open.begin(), open.end(),
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
    auto [have, paid] = *next;
    open.erase(next);
    if ((item.needers & ~have) == 0) return paid;
    if (!done.emplace(have, paid).second) continue;
    for (std::size_t from = 0; from < price.size(); ++from)
      for (std::size_t to = 0; to < price.size(); ++to) {
        if ((have >> from & 1) == 0 || (have >> to & 1) != 0) continue;
        RankMask more = have | RankMask{1} << to;
        std::int64_t sum = paid + price[from][to];
        auto [at, is_new] = open.try_emplace(more, sum);
        if (!is_new) at->second = std::min(at->second, sum);
      }
  }
  return -1;
}

TEST_CASE("no element is said to pay more than its cheapest tree does") {
  std::vector<Topology> topologies = machines();
  for (const char* spec : {"dgx-h100:2", "pcie-8x3090", "dgx-a100:3", "rtx-pro-6000-8:2"})
    topologies.push_back(sim::find_topology(spec));
  std::int64_t equal = 0, paying = 0, above_one = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Prng prng(seed);
    const Topology& topology = prng.pick(topologies);
    std::vector<Rank> ranks;
    for (std::int32_t device = 0; device < topology.devices(); ++device)
      ranks.push_back(static_cast<Rank>(device));
    prng.shuffle(ranks);
    ranks.resize(std::min<std::size_t>(ranks.size(), 5));
    if (ranks.size() < 2) continue;
    std::sort(ranks.begin(), ranks.end());
    PricedRoutes routes(topology, ranks, {topology.machine(), Switches::Forward});
    Prices prices;
    for (std::size_t r = 0; r < routes.resources(); ++r)
      prices.push_back(prng.one_in(3) ? 0 : static_cast<std::int32_t>(prng.below(4)));
    Payments payments(routes, prices);
    std::vector<RankMask> at_least = routes.paying(prices);
    std::vector<std::vector<int>> price(ranks.size(), std::vector<int>(ranks.size(), 0));
    for (std::size_t i = 0; i < at_least.size(); ++i)
      for (std::size_t from = 0; from < ranks.size(); ++from)
        price[from][i % ranks.size()] += (at_least[i] >> from & 1) != 0 ? 1 : 0;
    for (int draw = 0; draw < 5; ++draw) {
      auto some = [&] { return static_cast<RankMask>(prng.between(1, (1 << ranks.size()) - 1)); };
      JointItem item{some(), 0, 1};
      item.needers = some() & ~item.holders;
      CAPTURE(seed, topology.name(), item.holders, item.needers, prices);
      std::int64_t found = payments.least(item), cheapest = cheapest_tree(item, price);
      REQUIRE(found <= cheapest);
      equal += found == cheapest;
      ++paying;
      above_one += found > 1;
    }
  }
  CHECK(paying > 10'000);
  CHECK(equal > paying * 9 / 10);
  CHECK(above_one > 1'000);
}

TEST_CASE("routes pay for every set that they enter, at the hops with the least capacity") {
  Topology topology = two_nodes();
  std::vector<Rank> ranks = ranks_of("0-3,8-9");
  PricedRoutes routes(topology, ranks, {topology.machine(), Switches::Forward});
  auto capacity = [&](std::vector<RankMask> sets, std::int32_t most) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const Prices& prices : routes.into(sets, most))
      least = std::min(least, static_cast<std::int64_t>(routes.passage(prices).bytes_per_s));
    return least / 1'000'000'000;
  };
  CHECK(routes.nodes() == std::vector<RankMask>{0b001111, 0b110000});
  CHECK(capacity({0b000001}, 1) == 450 + 50);
  // The other node's two NICs, not the four here.
  CHECK(capacity({0b0001, 0b0010, 0b0100, 0b1000}, 1) == 4 * 450 + 2 * 50);
  CHECK(capacity({0b001111}, 1) == 2 * 50);
  // A route into rank 0 enters two sets.
  CHECK(capacity({0b000001, 0b001111}, 1) == 450 + 2 * 50);
  CHECK(capacity({0b000001, 0b001111}, 2) == 450 + 4 * 50);
  CHECK(capacity({0b111110}, 1) == 450 + 50);
}

TEST_CASE("ranks of a node that gather use no more NICs than the other node has") {
  Topology topology = two_nodes();
  // Rank 0 to 3 lack 3 MB each. Into each of them lead 500 GB/s, into all of them 4 x 450 and the
  // two NICs of ranks 8 and 9. A tensor that stays where it is makes these part of the job.
  std::vector<Request> job{request_of("f32", "0-3", "S(0)", "0-3", "R"),
                           request_of("u8", "8-9", "R", "8-9", "S(0)")};
  Bound bound = bound_of(job, topology);
  CHECK(bound.cut_ps == 6'000'000);
  CHECK(bound.price_ps == 6'315'790);  // 12 MB at 1,900 GB/s
  CHECK(bound.limited_by() == LimitedBy::Price);
}

TEST_CASE("a node's ranks that are sent to, and another's that gather, share NICs") {
  Topology topology = two_nodes();
  // 2 MB to each of ranks 2 and 3, and 8 and 9 exchange 2 MB each: all of it comes in at ranks 2
  // and 3 over NVLink, goes out of 8 and 9 over NVLink, or out of them over NICs.
  std::vector<Request> job{request_of("bf16", "1,9", "R", "2-3", "R"),
                           request_of("f32", "8-9", "S(0)", "8-9", "R"),
                           request_of("u8", "0-3,8-9", "R", "0-3", "S(0)")};
  Bound bound = bound_of(job, topology);
  CHECK(bound.cut_ps == 4'000'000);
  CHECK(bound.price_ps == 4'210'527);  // 8 MB at 4 x 450 + 2 x 50 GB/s
}

TEST_CASE("where switches multicast, a transfer pays only where it comes in, or not at all") {
  Topology topology = sim::find_topology("dgx-h100:2");
  std::vector<Rank> ranks = ranks_of("0-3,8-9");
  Reducing links(topology.machine(), Switches::Forward), nvlink = links, network = links;
  nvlink.nvlink = true;
  network.network = true;
  PricedRoutes over_links(topology, ranks, links), over_nvlink(topology, ranks, nvlink);
  CHECK(over_links.show_transfers());
  CHECK(over_nvlink.show_transfers());
  CHECK(over_nvlink.resources() + ranks.size() == over_links.resources());
  CHECK(!PricedRoutes(topology, ranks, network).show_transfers());
}

TEST_CASE("of several addends, the one that the fewest ranks hold") {
  std::vector<Member> members{{0, 1}, {1, 0}, {2, 1}, {5, 2}, {6, 2}, {7, 2}};
  CHECK(JointCount::holders_of(members) == 0b10);
  CHECK(JointCount::needers_of(members) == 0b11100111);
}

}  // namespace
}  // namespace reshard::test
