// SPDX-License-Identifier: BSD-3-Clause
// Which renumberings are found, and that each of them changes nothing.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/core/packing/packing_cases.h"
#include "tests/support/cases.h"
#include "tests/support/part.h"

namespace reshard {
namespace {

std::int64_t symmetries(std::string_view mesh, std::string_view shape, std::string_view from,
                        std::string_view to, std::string_view machine = "dgx-h100:2") {
  return PackingCase(request_on(mesh, shape, from, to), machine).symmetry.size();
}

std::vector<Slot> images(const std::vector<Slot>& slots, const Symmetry::Generator& generator) {
  std::vector<Slot> out;
  for (Slot slot : slots) out.push_back(generator.slot[to_index(slot)]);
  std::sort(out.begin(), out.end());
  return out;
}

// Holders by addend, in whatever order the addends come.
std::vector<std::vector<Slot>> sorted(std::vector<std::vector<Slot>> lists) {
  std::sort(lists.begin(), lists.end());
  return lists;
}

void check_generator(const PackingCase& own, const Symmetry::Generator& generator) {
  const std::vector<Rank>& ranks = own.commodities.ranks();
  const Commodities& commodities = own.commodities;
  for (std::size_t a = 0; a < ranks.size(); ++a)
    for (std::size_t b = 0; b < ranks.size(); ++b) {
      Rank to_a = ranks[to_index(generator.slot[a])], to_b = ranks[to_index(generator.slot[b])];
      if (a == b) continue;
      REQUIRE(to_a != to_b);
      CHECK(&own.topology.rule(ranks[a], ranks[b]) == &own.topology.rule(to_a, to_b));
      CHECK((own.topology.node_of(ranks[a]) == own.topology.node_of(ranks[b])) ==
            (own.topology.node_of(to_a) == own.topology.node_of(to_b)));
    }
  for (std::size_t i = 0; i < commodities.list().size(); ++i) {
    const Commodity &one = commodities.list()[i],
                    &image = commodities.list()[to_index(generator.commodity[i])];
    CHECK(one.bytes == image.bytes);
    CHECK(images(one.needers, generator) == image.needers);
    std::vector<std::vector<Slot>> holders;
    for (const std::vector<Slot>& list : one.holders) holders.push_back(images(list, generator));
    CHECK(sorted(holders) == sorted(image.holders));
  }
}

}  // namespace

TEST_CASE("tied digits shift together, free ones alone") {
  // Both axes of 4 are two digits; rows of one side are columns of the other, so that their digits
  // are tied in pairs.
  CHECK(symmetries("4x4", "64,64", "S(0)S(1)", "S(1)S(0)") == 4);
  CHECK(symmetries("4x4", "64,64", "S(0)S(0)", "RR") == 16);
  CHECK(symmetries("2x8", "64,64", "S(0)R", "RS(0)") == 8);
  CHECK(symmetries("4x4", "64,64", "P(sum)R", "S(0)S(1)") == 16);
  // 3 and 2 cut across each other: no digit of either may shift; the other dim's may.
  CHECK(symmetries("6x2", "36,36", "S(0)S(1)", "S(1)S(0)", "dgx-h100:2") == 1);
}

TEST_CASE("what is uneven has less of it") {
  CHECK(symmetries("4", "8", "S(0)", "R", "dgx-h100:1") == 4);
  CHECK(symmetries("4", "7", "S(0)", "R", "dgx-h100:1") == 1);
  // 2 + 2 + 1 + 1 rows: the lower digit alone keeps the sizes.
  CHECK(symmetries("2x2", "6,4", "S(0)S(0)", "RR", "dgx-h100:1") == 2);
}

TEST_CASE("ranks of a node stay together, and classes of devices") {
  // 3 x 4 ranks on nodes of 8: shifting rows would tear the nodes apart, columns do not.
  CHECK(symmetries("3x4", "12,12", "RS(0)", "RS(1)", "dgx-h100:2") == 4);
  CHECK(symmetries("2x4", "64,64", "S(0)S(1)", "RR", "dgx-h100:1") == 8);
  // Across meshes of 8 and 24: three nodes turn, beside the eight ranks of every node; 24 cut in
  // halves first would tear them apart.
  Request request = across("64,64", "8", "0-7", "S(0)", "24", "8-31", "R");
  CHECK(PackingCase(request, "dgx-h100:4").symmetry.size() == 8 * 8 * 3);
  // Two GPUs share a switch and have a class of their own.
  CHECK(symmetries("8", "64,64", "S(0)", "R", "rtx-pro-6000-8") <
        symmetries("8", "64,64", "S(0)", "R", "dgx-h100:1"));
}

TEST_CASE("a large group is cut to those that keep every rank in its node") {
  Request request = across("64,64", "64", "0-63", "S(0)", "64", "64-127", "R");
  PackingCase own(request, "dgx-h100:16");
  // Of 64 x 64: eight by eight within nodes, then half of the nodes that hold.
  CHECK(own.symmetry.size() == 8 * 8 * 2);
  int within = 0;
  for (const Symmetry::Generator& generator : own.symmetry.generators()) {
    bool keeps = true;
    for (std::size_t slot = 0; slot < generator.slot.size(); ++slot)
      keeps = keeps && to_index(generator.slot[slot]) / 8 == slot / 8;
    within += keeps;
  }
  CHECK(within == 6);
}

TEST_CASE("every generator of drawn requests is a symmetry") {
  test::Prng prng(20261123);
  int generators = 0, requests = 0;
  for (int draw = 0; draw < 3'000 / test::kOneOf; ++draw) {
    std::optional<Request> request = test::draw_request(prng);
    if (!request) continue;
    PackingCase own(*request, prng.one_in(2) ? "dgx-h100:8" : "rtx-pro-6000-8:8");
    INFO("draw " << draw << ": " << request->text());
    for (const Symmetry::Generator& generator : own.symmetry.generators()) {
      check_generator(own, generator);
      ++generators;
    }
    ++requests;
  }
  CHECK(generators > requests / 8);
}

TEST_CASE("a walk sees every element once") {
  PackingCase own(request_on("4x4", "64,64", "S(0)S(0)", "RR"), "dgx-h100:2");
  SymmetryWalk walk(own.symmetry, 16, own.commodities.list().size());
  std::vector<Slot> seen;
  do {
    seen.push_back(walk.slot(0));
  } while (walk.next());
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<Slot>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
}

}  // namespace reshard
