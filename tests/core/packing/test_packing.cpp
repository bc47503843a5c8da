// SPDX-License-Identifier: BSD-3-Clause
// Trees deliver what they must, and the busiest link takes hardly longer than necessary.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "core/packing/loads.h"
#include "core/packing/path_search.h"
#include "tests/core/packing/packing_cases.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"

namespace reshard {
namespace {

bool holds(const std::vector<Slot>& sorted, Slot slot) {
  return std::binary_search(sorted.begin(), sorted.end(), slot);
}

// The ranks that a fold's hops bring together at the root, each once.
void check_gather(const Commodity& commodity, const Branch& branch) {
  std::map<Slot, std::set<Slot>> under;  // whose addends a rank has
  for (Slot giver : branch.contributors) CHECK(under[giver].insert(giver).second);
  std::set<Slot> sent;
  for (const TreeHop& hop : branch.in) {
    CHECK(sent.insert(hop.from).second);
    CHECK(!under[hop.from].empty());
    CHECK(!sent.contains(hop.to));
    for (Slot giver : under[hop.from]) CHECK(under[hop.to].insert(giver).second);
  }
  std::set<std::size_t> addends;
  for (Slot giver : under[branch.root])
    for (std::size_t a = 0; a < commodity.holders.size(); ++a)
      if (holds(commodity.holders[a], giver)) CHECK(addends.insert(a).second);
  CHECK(addends.size() == commodity.holders.size());
  CHECK(under[branch.root].size() == branch.contributors.size());
}

// Ranks that have it in the end.
std::set<Slot> reached(const Commodity& commodity, const Branch& branch) {
  std::set<Slot> have;
  if (branch.root >= 0)
    have.insert(branch.root);
  else
    have.insert(commodity.holders[0].begin(), commodity.holders[0].end());
  for (const TreeHop& hop : branch.out) {
    CHECK(have.contains(hop.from));
    CHECK(have.insert(hop.to).second);
  }
  return have;
}

void check_trees(const PackingCase& own, const Packing& packing) {
  std::map<std::int32_t, std::int64_t> granules;
  for (const PackedTree& tree : packing.trees) {
    const Commodity& commodity = own.commodities.list()[to_index(tree.commodity)];
    granules[tree.commodity] += tree.granules;
    std::set<Slot> have;
    for (const Branch& branch : tree.branches) {
      CHECK((branch.root >= 0) == commodity.folds());
      if (branch.root >= 0) check_gather(commodity, branch);
      have.merge(reached(commodity, branch));
    }
    for (Slot needer : commodity.needers) CHECK(have.contains(needer));
  }
  for (std::size_t i = 0; i < packing.granules.size(); ++i)
    CHECK(granules[static_cast<std::int32_t>(i)] == packing.granules[i]);
}

// Hops that follow each other, summed over all trees.
std::int64_t depth(const Packing& packing) {
  std::int64_t sum = 0;
  for (const PackedTree& tree : packing.trees) {
    std::map<Slot, std::int64_t> below;
    for (const TreeHop& hop : tree.branches[0].out) {
      below[hop.to] = below[hop.from] + 1;
      sum += below[hop.to] * tree.granules;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("trees of drawn requests reach all needers with every addend once") {
  test::Prng prng(20261124);
  int folds = 0, trees = 0;
  for (int draw = 0; draw < 1'500 / test::kOneOf; ++draw) {
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    PackingCase own(*request, prng.one_in(2) ? "dgx-h100:8" : "rtx-pro-6000-8:8,nics=1");
    if (own.commodities.list().empty()) continue;
    INFO("draw " << draw << ": " << request->text());
    // With latencies that cost nothing, as much as classes, above all.
    PackingOptions options;
    options.target_ps = 1'000'000;
    options.granules = 16;
    options.latency_permille = prng.pick(std::vector<std::int64_t>{0, 20, 200, 1000, 1'000'000});
    options.shallower_rounds = prng.one_in(2) ? 3 : 0;
    options.fewer_trees_permille = prng.one_in(2) ? 970 : 0;
    Packing packing = own.pack_with(options);
    check_trees(own, packing);
    folds += request->fold().fold_count > 1;
    trees += static_cast<int>(packing.trees.size());
  }
  CHECK(folds > 50 / test::kOneOf);
  CHECK(trees > 1'000 / test::kOneOf);
}

TEST_CASE("who is in the set is not reached again, however dear the way to it was") {
  PackingCase own(request_on("4", "4500000", "S(0)", "R"), "dgx-h100:1");
  Loads loads(own.routes, own.symmetry.size(), 10'000'000);
  for (Direction direction : {Direction::Outwards, Direction::Inwards}) {
    PathSearch search(own.routes);
    search.add(0, 0);
    search.add(1, Price{1} << 40);
    search.run(loads, direction);
    CHECK(search.before(1) == -1);
    CHECK(search.cost(1) == Price{1} << 40);
    CHECK(search.before(2) == 0);
    CHECK(search.cost(2) < Price{1} << 40);
  }
}

TEST_CASE("shallower rounds give trees that are less deep, and no link much more to do") {
  Request request = across("4096,4096", "16", "0-15", "S(0)", "16", "16-31", "R");
  PackingCase own(request, "dgx-h100:4");
  PackingOptions options;
  options.target_ps = 167'800'000;
  options.latency_permille = 20;
  Packing deep = own.pack_with(options);
  options.shallower_rounds = 6;
  Packing shallow = own.pack_with(options);
  CHECK(depth(shallow) < depth(deep));
  CHECK(shallow.time_ps <= std::max(deep.time_ps, options.target_ps) * 101 / 100);
}

TEST_CASE("an all-gather on one switch takes three shards' time") {
  // 4 ranks, 450 GB/s each way, shards of 4.5 MB: 10 us each.
  PackingCase own(request_on("4", "4500000", "S(0)", "R"), "dgx-h100:1");
  // Granules are rounded up to bytes.
  std::int64_t time_ps = own.pack_for(30'000'000).time_ps;
  CHECK(time_ps >= 30'000'000);
  CHECK(time_ps < 30'001'000);
}

TEST_CASE("what many need enters a node once, over all its NICs") {
  // 36 MB from one node to all ranks of another: 8 NICs of 50 GB/s take 90 us.
  Request request = across("9000000", "8", "0-7", "S(0)", "8", "8-15", "R");
  PackingCase own(request, "dgx-h100:2");
  std::int64_t time_ps = own.pack_for(90'000'000, 256).time_ps;
  CHECK(time_ps >= 89'999'000);
  CHECK(time_ps < 92'000'000);
}

TEST_CASE("prices rise by e for a twentieth of the time aimed at, and fall again") {
  PackingCase own(request_on("4", "4500000", "S(0)", "R"), "dgx-h100:1");
  Loads loads(own.routes, own.symmetry.size(), 10'000'000);
  Price empty = loads.price(0);
  // 4.5 MB is the target; a twentieth of it on each of the ranks.
  loads.carry(0, 4'500'000 / 20);
  CHECK(loads.price(0) > empty * 260 / 100);
  CHECK(loads.price(0) < empty * 280 / 100);
  CHECK(loads.time_ps() == Approx(500'000).margin(10));
  CHECK(loads.top() == loads.price(0));
  loads.release(0, 4'500'000 / 20);
  CHECK(loads.price(0) == empty);
}

}  // namespace reshard
