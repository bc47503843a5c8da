// SPDX-License-Identifier: BSD-3-Clause
// The fair-share solver alone: small systems with their equations, then random ones against slow
// oracles.
#include "sim/sharing/fair_share.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "core/base/errors.h"
#include "tests/support/part.h"
#include "tests/support/prng.h"
#include "tests/support/slow_share.h"

using namespace reshard;
using namespace reshard::sim;
using reshard::test::Prng;
using reshard::test::SlowFlow;

namespace {

// So much that nothing finishes.
constexpr Int128 kWork = Int128{1} << 60;

// A system with its flows numbered as they are added.
class System {
 public:
  explicit System(std::vector<std::int64_t> capacities) : shares_(std::move(capacities), 4) {}
  std::int32_t add(std::vector<std::int32_t> path, std::int64_t cap = FairShare::kNoCap) {
    std::vector<ResourceId> ids;
    for (std::int32_t r : path) ids.push_back(ResourceId{r});
    shares_.add(next_, ids, cap, kWork);
    return next_++;
  }
  void remove(std::int32_t flow) { shares_.remove(flow, 0); }
  std::vector<std::int64_t> rates() {
    shares_.solve(0);
    std::vector<std::int64_t> out;
    for (std::int32_t flow = 0; flow < next_; ++flow) out.push_back(shares_.rate(flow));
    return out;
  }
  FairShare& shares() { return shares_; }

 private:
  FairShare shares_;
  std::int32_t next_ = 0;
};

using Rates = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("one flow has its narrowest resource to itself") {
  // x0 <= 100, x0 <= 40, x0 <= 70
  System s({100, 40, 70});
  s.add({0, 1, 2});
  CHECK(s.rates() == Rates{40});
}

TEST_CASE("two flows halve what they share") {
  // x0 + x1 <= 100
  System s({100});
  s.add({0});
  s.add({0});
  CHECK(s.rates() == Rates{50, 50});
}

TEST_CASE("a share that does not divide is rounded down") {
  // x0 + x1 + x2 <= 100, all equal: floor(100/3)
  System s({100});
  for (int i = 0; i < 3; ++i) s.add({0});
  CHECK(s.rates() == Rates{33, 33, 33});
}

TEST_CASE("what a narrow resource leaves goes to the other flow") {
  // x0 <= 10, x0 + x1 <= 100: x0 = 10 first, then x1 = 90
  System s({100, 10});
  s.add({0, 1});
  s.add({0});
  CHECK(s.rates() == Rates{10, 90});
}

TEST_CASE("the long flow of a chain gets the least everywhere") {
  // x0 + x1 <= 100, x0 + x2 <= 60, x0 + x3 + x4 <= 90
  // shares 50, 30, 30: resource 1 first (30, smaller id): x0 = x2 = 30. Then resource 2: (90-30)/2
  // = 30 for x3, x4; resource 0: 70 for x1.
  System s({100, 60, 90});
  s.add({0, 1, 2});
  s.add({0});
  s.add({1});
  s.add({2});
  s.add({2});
  CHECK(s.rates() == Rates{30, 70, 30, 30, 30});
}

TEST_CASE("a cap is a resource of one flow") {
  // x0 + x1 + x2 <= 90, x0 <= 10: x0 = 10, the others (90-10)/2
  System s({90});
  s.add({0}, 10);
  s.add({0});
  s.add({0});
  CHECK(s.rates() == Rates{10, 40, 40});
}

TEST_CASE("a cap above the share does not bind until others leave") {
  // x0 <= 60, x0 + x1 <= 100: both 50; alone x0 = 60
  System s({100});
  s.add({0}, 60);
  std::int32_t other = s.add({0});
  CHECK(s.rates() == Rates{50, 50});
  s.remove(other);
  s.rates();
  CHECK(s.shares().rate(0) == 60);
}

TEST_CASE("a cap equal to the share comes before the resource") {
  // x0 <= 3, x0 + x1 <= 7: floor(7/2) = 3 = cap. The cap first: x0 = 3, x1 = 7 - 3. The resource
  // first would give x1 = 3.
  System s({7});
  s.add({0}, 3);
  s.add({0});
  CHECK(s.rates() == Rates{3, 4});
}

TEST_CASE("equal shares are settled by the smaller resource id") {
  // x0 + x1 <= 7, x1 + x2 <= 7; both shares 3. Resource 0 first: x0 = x1 = 3, then x2 = 7 - 3.
  System s({7, 7});
  s.add({0});
  s.add({0, 1});
  s.add({1});
  CHECK(s.rates() == Rates{3, 3, 4});
}

TEST_CASE("no flow goes without a byte per second") {
  System s({3});
  for (int i = 0; i < 3; ++i) s.add({0});
  CHECK(s.rates() == Rates{1, 1, 1});
  CHECK_THROWS_AS(s.add({0}), CheckFailure);
}

TEST_CASE(
    "random systems under arrivals and departures equal the slow integer filling at every step") {
  constexpr int kSystems = 400, kSteps = 40;
  int solutions = 0;
  for (int seed = 0; seed < kSystems; ++seed) {
    INFO("seed " << seed);
    Prng prng(static_cast<std::uint64_t>(seed));
    auto resources = static_cast<std::int32_t>(prng.between(1, 12));
    std::int64_t scale = prng.pick(std::vector<std::int64_t>{60, 1000, 1'000'000'007});
    std::vector<std::int64_t> capacities;
    for (std::int32_t r = 0; r < resources; ++r)
      capacities.push_back(scale + prng.below(scale * (seed % 3) + 1));
    FairShare shares(capacities, 4);
    std::vector<SlowFlow> slow;  // by flow number
    std::vector<bool> alive;
    for (int step = 0; step < kSteps; ++step) {
      for (std::int64_t k = prng.between(1, 4); k > 0; --k) {
        auto flow = static_cast<std::int32_t>(prng.below(40));
        auto at = static_cast<std::size_t>(flow);
        if (at >= slow.size()) {
          slow.resize(at + 1);
          alive.resize(at + 1, false);
        }
        if (alive[at]) {
          shares.remove(flow, 0);
          alive[at] = false;
          continue;
        }
        std::vector<std::int32_t> order;
        for (std::int32_t r = 0; r < resources; ++r) order.push_back(r);
        prng.shuffle(order);
        order.resize(static_cast<std::size_t>(prng.between(1, std::min(resources, 4))));
        slow[at] = {order, prng.one_in(3) ? prng.between(1, scale) : FairShare::kNoCap};
        std::vector<ResourceId> ids;
        for (std::int32_t r : order) ids.push_back(ResourceId{r});
        shares.add(flow, ids, slow[at].cap, kWork);
        alive[at] = true;
      }
      shares.solve(0);
      std::vector<std::int64_t> expected = test::slow_integer_rates(capacities, slow, alive);
      for (std::size_t at = 0; at < slow.size(); ++at)
        if (alive[at]) REQUIRE(shares.rate(static_cast<std::int32_t>(at)) == expected[at]);
      ++solutions;
    }
  }
  CHECK(solutions == kSystems * kSteps);
}

TEST_CASE("shares of the largest capacities are compared without overflow") {
  // What flow 0 alone would get of the first resource, times the flows of the second, is above 2^64
  // and, cut to 64 bits, below what the second has.
  constexpr std::int64_t kLarge = std::int64_t{1} << 62, kSmall = kLarge / 2;
  FairShare shares({kLarge, kSmall}, 2);
  shares.add(0, std::vector{ResourceId{0}, ResourceId{1}}, FairShare::kNoCap, kWork);
  for (std::int32_t flow = 1; flow < 16; ++flow)
    shares.add(flow, std::vector{ResourceId{1}}, FairShare::kNoCap, kWork);
  shares.solve(0);
  for (std::int32_t flow = 0; flow < 16; ++flow) CHECK(shares.rate(flow) == kSmall / 16);
}

TEST_CASE("many small parts, now and then bridged, equal the slow filling") {
  // 24 clusters of three resources: a part is a small piece of the whole, and what hangs together
  // with it is found flow by flow.
  constexpr std::int32_t kClusters = 24;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    std::vector<std::int64_t> capacities;
    for (std::int32_t r = 0; r < 3 * kClusters; ++r) capacities.push_back(prng.between(50, 5000));
    FairShare shares(capacities, 3);  // longer than any path
    std::vector<SlowFlow> slow(200);
    std::vector<bool> alive(slow.size(), false);
    for (int step = 0; step < 60; ++step) {
      for (std::int64_t k = step == 0 ? 150 : prng.between(1, 3); k > 0; --k) {
        auto flow = static_cast<std::int32_t>(prng.below(200));
        auto at = static_cast<std::size_t>(flow);
        if (alive[at]) {
          shares.remove(flow, step);
        } else {
          auto cluster = static_cast<std::int32_t>(prng.below(kClusters)),
               first = static_cast<std::int32_t>(prng.below(3)), a = 3 * cluster + first,
               b = 3 * cluster + (first + 1) % 3;
          if (prng.one_in(20)) b = (b + 3) % (3 * kClusters);
          slow[at] = {{a, b}, FairShare::kNoCap};
          shares.add(flow, std::vector{ResourceId{a}, ResourceId{b}}, FairShare::kNoCap, kWork);
        }
        alive[at] = !alive[at];
      }
      shares.solve(step);
      std::vector<std::int64_t> expected = test::slow_integer_rates(capacities, slow, alive);
      for (std::size_t at = 0; at < slow.size(); ++at)
        if (alive[at]) REQUIRE(shares.rate(static_cast<std::int32_t>(at)) == expected[at]);
    }
  }
}

TEST_CASE("flows that keep their caps, or just miss them, equal the slow filling") {
  // Most flows have caps near what their resources can give to each, so that a cap is kept, lost
  // and reached again as others come and go, often by one byte/s. Clusters keep parts small; flows
  // between clusters make one part need what another has just settled.
  int kept = 0, lost = 0;
  for (std::uint64_t seed = 0; seed < 300 / test::kOneOf; ++seed) {
    INFO("seed " << seed);
    Prng prng(seed);
    auto clusters = static_cast<std::int32_t>(prng.pick(std::vector<std::int64_t>{1, 2, 12}));
    std::int64_t scale = prng.pick(std::vector<std::int64_t>{40, 400, 50'000});
    std::vector<std::int64_t> capacities;
    for (std::int32_t r = 0; r < 3 * clusters; ++r)
      capacities.push_back(prng.one_in(2) ? scale : prng.between(scale / 2, 2 * scale));
    FairShare shares(capacities, 4);
    std::vector<SlowFlow> slow(static_cast<std::size_t>(12 * clusters));
    std::vector<bool> alive(slow.size(), false);
    for (int step = 0; step < 80; ++step) {
      for (std::int64_t k = step == 0 ? 8 * clusters : prng.between(1, 4); k > 0; --k) {
        auto flow = static_cast<std::int32_t>(prng.below(static_cast<std::int64_t>(slow.size())));
        auto at = static_cast<std::size_t>(flow);
        if (alive[at]) {
          shares.remove(flow, step);
        } else {
          auto cluster = static_cast<std::int32_t>(prng.below(clusters)),
               first = static_cast<std::int32_t>(prng.below(3)), a = 3 * cluster + first,
               b = 3 * cluster + (first + 1) % 3;
          if (prng.one_in(6)) b = (b + 3) % (3 * clusters);
          std::int64_t cap =
              std::max<std::int64_t>(1, scale / prng.between(2, 8) + prng.between(-2, 2));
          slow[at] = {{a, b}, prng.one_in(5) ? FairShare::kNoCap : cap};
          shares.add(flow, std::vector{ResourceId{a}, ResourceId{b}}, slow[at].cap, kWork);
        }
        alive[at] = !alive[at];
      }
      shares.solve(step);
      std::vector<std::int64_t> expected = test::slow_integer_rates(capacities, slow, alive);
      for (std::size_t at = 0; at < slow.size(); ++at) {
        if (!alive[at]) continue;
        REQUIRE(shares.rate(static_cast<std::int32_t>(at)) == expected[at]);
        if (slow[at].cap == FairShare::kNoCap) continue;
        ++(expected[at] == slow[at].cap ? kept : lost);
      }
    }
  }
  CHECK(kept > 20'000 / test::kOneOf);
  CHECK(lost > 20'000 / test::kOneOf);
}

TEST_CASE(
    "random systems come within a few bytes per second of exact rationals, and meet them where "
    "these are whole") {
  int exact = 0, flows_seen = 0;
  std::int64_t worst = 0;
  for (int seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Prng prng(static_cast<std::uint64_t>(1000 + seed));
    auto resources = static_cast<std::int32_t>(prng.between(1, 6));
    std::vector<std::int64_t> capacities;
    // 2^8 * 3^4 * 5^2 * 7 divides by most small counts several times over.
    for (std::int32_t r = 0; r < resources; ++r)
      capacities.push_back(3'628'800 * prng.between(100, 1000));
    std::vector<SlowFlow> slow;
    FairShare shares(capacities, 3);
    std::int64_t flows = prng.between(1, 10);
    for (std::int64_t flow = 0; flow < flows; ++flow) {
      std::vector<std::int32_t> order;
      for (std::int32_t r = 0; r < resources; ++r) order.push_back(r);
      prng.shuffle(order);
      order.resize(static_cast<std::size_t>(prng.between(1, std::min(resources, 3))));
      slow.push_back(
          {order, prng.one_in(4) ? 3'628'800 * prng.between(1, 300) : FairShare::kNoCap});
      std::vector<ResourceId> ids;
      for (std::int32_t r : order) ids.push_back(ResourceId{r});
      shares.add(static_cast<std::int32_t>(flow), ids, slow.back().cap, kWork);
    }
    shares.solve(0);
    std::vector<test::Fraction> expected = test::exact_rates(capacities, slow);
    bool whole = true;
    for (const test::Fraction& rate : expected) whole = whole && rate.bottom == 1;
    for (std::size_t flow = 0; flow < slow.size(); ++flow, ++flows_seen) {
      auto rate = static_cast<std::int64_t>(expected[flow].top / expected[flow].bottom),
           got = shares.rate(static_cast<std::int32_t>(flow));
      if (whole) REQUIRE(got == rate);
      worst = std::max({worst, got - rate, rate - got});
    }
    exact += whole ? 1 : 0;
  }
  CHECK(flows_seen > 1500);
  CHECK(exact > 250);
  CHECK(worst <= 3);
}

TEST_CASE("what limits a flow: with half of it the flow has less, and a cap is reached") {
  int by_cap = 0, by_resource = 0;
  for (int seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Prng prng(static_cast<std::uint64_t>(5000 + seed));
    auto resources = static_cast<std::int32_t>(prng.between(1, 8));
    std::vector<std::int64_t> capacities;
    for (std::int32_t r = 0; r < resources; ++r)
      capacities.push_back(1'000'000'007 + prng.below(2'000'000'000));
    std::vector<SlowFlow> slow;
    FairShare shares(capacities, 4);
    std::vector<bool> alive(20, true);
    for (std::int32_t flow = 0; flow < 20; ++flow) {
      std::vector<std::int32_t> order;
      for (std::int32_t r = 0; r < resources; ++r) order.push_back(r);
      prng.shuffle(order);
      order.resize(static_cast<std::size_t>(prng.between(1, std::min(resources, 4))));
      slow.push_back({order, prng.one_in(3) ? prng.between(1, 500'000'000) : FairShare::kNoCap});
      std::vector<ResourceId> ids;
      for (std::int32_t r : order) ids.push_back(ResourceId{r});
      shares.add(flow, ids, slow.back().cap, Int128{1'000'000'000} * kUnitsPerByte);
    }
    shares.solve(0);
    for (std::int32_t flow = 0; flow < 20; flow += 3) {
      shares.remove(flow, 0);
      alive[static_cast<std::size_t>(flow)] = false;
    }
    shares.solve(0);
    for (std::size_t flow = 0; flow < slow.size(); ++flow) {
      if (!alive[flow]) continue;
      auto number = static_cast<std::int32_t>(flow);
      std::optional<ResourceId> limit = shares.limit(number);
      if (!limit) {
        ++by_cap;
        CHECK(shares.rate(number) == slow[flow].cap);
        continue;
      }
      ++by_resource;
      const std::vector<std::int32_t>& path = slow[flow].path;
      auto id = static_cast<std::int32_t>(*limit);
      CHECK(std::find(path.begin(), path.end(), id) != path.end());
      std::vector<std::int64_t> halved = capacities;
      halved[static_cast<std::size_t>(id)] /= 2;
      CHECK(test::slow_integer_rates(halved, slow, alive)[flow] < shares.rate(number));
    }
  }
  CHECK((by_cap > 200 && by_resource > 1000));
}
