// SPDX-License-Identifier: BSD-3-Clause
// Trees are given up, not bytes: what is left carries everything, and no link more than it may.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

#include "core/packing/loads.h"
#include "tests/core/packing/packing_cases.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"

namespace reshard {
namespace {

// By resource class: bytes that trees carry over all its resources, hop by hop.
std::vector<std::int64_t> carried(const PackingCase& own, const Packing& packing) {
  std::vector<std::int64_t> out(own.routes.classes().size(), 0);
  for (const PackedTree& tree : packing.trees) {
    const auto of = to_index(tree.commodity);
    const std::int64_t each =
        ceil_div(own.commodities.list()[of].bytes, packing.granules[of] * packing.stabilizer[of]);
    for (const Branch& branch : tree.branches)
      for (const std::vector<TreeHop>* hops : {&branch.in, &branch.out})
        for (const TreeHop& hop : *hops)
          own.routes.for_each_class(hop.from, hop.to, [&](std::int32_t resource_class) {
            out[to_index(resource_class)] += tree.granules * each;
          });
  }
  return out;
}

// Busy time, with everything that the images of the trees carry, of one resource.
double busy_ps(const PackingCase& own, std::size_t resource_class, std::int64_t bytes) {
  const RankRoutes::ResourceClass& of = own.routes.classes()[resource_class];
  return 1e12 * static_cast<double>(bytes) * static_cast<double>(own.symmetry.size()) /
         static_cast<double>(of.resources) / static_cast<double>(of.bytes_per_s);
}

}  // namespace

TEST_CASE("trees that carry little are given up within the limit") {
  test::Prng prng(20261128);
  int given_up = 0, kept = 0;
  for (int draw = 0; draw < 600 / test::kOneOf; ++draw) {
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    PackingCase own(*request, prng.one_in(2) ? "dgx-h100:8" : "rtx-pro-6000-8:8,nics=1");
    if (own.commodities.list().empty()) continue;
    PackingOptions options;
    options.target_ps = 1'000'000;
    options.granules = 64;
    Packing all = own.pack_with(options);
    options.fewer_trees_permille = prng.pick(std::vector<std::int64_t>{1, 800, 970, 1000});
    Packing few = own.pack_with(options);
    INFO("draw " << draw << ": " << request->text() << ", " << options.fewer_trees_permille);
    CHECK(few.trees.size() <= all.trees.size());
    given_up += static_cast<int>(all.trees.size() - few.trees.size());
    kept += static_cast<int>(few.trees.size());
    std::map<std::int32_t, std::int64_t> granules;
    for (const PackedTree& tree : few.trees) {
      CHECK(tree.granules > 0);
      granules[tree.commodity] += tree.granules;
      CHECK(std::any_of(all.trees.begin(), all.trees.end(), [&](const PackedTree& other) {
        return other.commodity == tree.commodity && other.branches == tree.branches;
      }));
    }
    for (std::size_t i = 0; i < few.granules.size(); ++i)
      CHECK(granules[static_cast<std::int32_t>(i)] == all.granules[i]);
    std::vector<std::int64_t> before = carried(own, all), after = carried(own, few);
    double busiest = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      // Loads are rounded down tree by tree.
      const double allowed = std::max(busy_ps(own, i, before[i]),
                                      static_cast<double>(all.time_ps) *
                                          static_cast<double>(options.fewer_trees_permille) / 1000);
      CHECK(busy_ps(own, i, after[i]) <= allowed * 1.001 + 1000);
      busiest = std::max(busiest, busy_ps(own, i, after[i]));
    }
    CHECK(static_cast<double>(few.time_ps) == Approx(busiest).epsilon(0.001).margin(1000));
  }
  CHECK(given_up > 50 / test::kOneOf);
  CHECK(kept > 500 / test::kOneOf);
}

}  // namespace reshard
