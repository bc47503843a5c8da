// SPDX-License-Identifier: BSD-3-Clause
// Flat buffers of what ranks have in other buffers, compared with one element after another.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "core/base/errors.h"
#include "core/stored/generators.h"
#include "tests/support/drawn_models.h"
#include "tests/support/part.h"

using namespace reshard;
using namespace reshard::test;
using Catch::Contains;

namespace {

using Numbers = std::vector<std::int64_t>;

// On dp=n,tp=m, cut by tp alone, perhaps transposed.
FusedBuffer draw_buffer(Prng& prng, const MeshRef& mesh, int number,
                        const std::vector<ModelTensorId>& tensors) {
  FusedBuffer out;
  out.name = fmt::format("b{}", number);
  out.mesh = mesh;
  Placement cut =
      prng.one_in(3) ? Placement::replicate() : Placement::shard(static_cast<int>(prng.below(2)));
  out.placements.placements = {Placement::replicate(), cut};
  for (std::int64_t i = prng.between(1, 2); i > 0; --i)
    out.blocks.push_back({{{prng.pick(tensors), 1}}, 0, prng.between(1, 3)});
  if (prng.one_in(3)) out.order = {1, 0};
  return out;
}

Numbers padded(Numbers numbers, std::int64_t multiple) {
  while (std::ssize(numbers) % multiple != 0) numbers.push_back(-1);
  return numbers;
}

}  // namespace

TEST_CASE("Shared flat buffers have what the ranks' buffers have, one after another") {
  Prng prng(5);
  int parts = 0;
  for (int i = 0; i < 5'000 / kOneOf; ++i) {
    INFO("case " << i);
    ModelTensors tensors;
    std::vector<ModelTensorId> ids;
    for (int t = 0; t < 4; ++t)
      ids.push_back(tensors.add(fmt::format("t{}", t),
                                {prng.between(1, 6), t < 2 ? 4 : prng.between(1, 5)}, DType::BF16));
    auto dp = static_cast<std::int32_t>(prng.between(1, 4)),
         tp = static_cast<std::int32_t>(prng.between(1, 3));
    auto mesh = std::make_shared<const Mesh>(Mesh::row_major({dp, tp}, Rank{2}, {"dp", "tp"}));
    Stored named(tensors), apart(tensors);
    Stored& to = prng.one_in(2) ? named : apart;
    SharedFlatBuffer flat{
        "flat", {}, {prng.one_in(2) ? "dp" : "0"}, prng.between(1, 4), prng.between(1, 5)};
    for (int b = 0; b < prng.between(1, 4); ++b) {
      // Blocks of equal columns.
      std::vector<ModelTensorId> some = prng.one_in(2) ? std::vector(ids.begin(), ids.begin() + 2)
                                                       : std::vector{ids[to_index(2 + b % 2)]};
      FusedBuffer buffer = draw_buffer(prng, mesh, b, some);
      add_fused(named, buffer);
      flat.buffers.insert(flat.buffers.begin(), buffer.name);
    }
    ElementNumbers held = element_numbers(named);
    add_shared_flat(to, named, flat);
    ElementNumbers made = element_numbers(to);
    for (std::int32_t position = 0; position < mesh->size(); ++position) {
      Rank rank = mesh->rank_at(position);
      Numbers all;
      for (const std::string& name : flat.buffers) {
        std::optional<StoredBufferId> id = named.find(rank, name);
        if (!id) continue;
        all = padded(all, flat.align);
        const auto& own = held[to_index(*id)];
        all.insert(all.end(), own.begin(), own.end());
      }
      all = padded(padded(all, flat.pad), dp);
      std::int64_t share = std::ssize(all) / dp, first = position / tp * share;
      std::optional<StoredBufferId> id = to.find(rank, "flat");
      REQUIRE(id.has_value() == (share > 0));
      if (!id) continue;
      REQUIRE(made[to_index(*id)] == Numbers(all.begin() + first, all.begin() + first + share));
      parts += static_cast<int>(to.buffers()[*id].parts.size());
    }
  }
  CHECK(parts > 20'000 / kOneOf);
}

TEST_CASE("Ranks that do not have the same cannot share") {
  ModelTensors tensors;
  ModelTensorId w = tensors.add("w", {4, 2}, DType::BF16);
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({2, 2}, Rank{0}, {"dp", "tp"}));
  Stored to(tensors);
  FusedBuffer buffer;
  buffer.name = "b";
  buffer.mesh = mesh;
  buffer.placements.placements = {Placement::shard(0), Placement::replicate()};
  buffer.blocks = {{{{w, 1}}, 0, 1}};
  add_fused(to, buffer);
  CHECK_THROWS_WITH(add_shared_flat(to, to, {"flat", {"b"}, {"dp"}}),
                    Contains("found another on rank 2 than on rank 0"));
  CHECK_THROWS_WITH(add_shared_flat(to, to, {"flat", {"b"}, {"ep"}}),
                    Contains("axes of the mesh dp=2,tp=2, each once, found 'ep'"));
  CHECK_THROWS_WITH(add_shared_flat(to, to, {"flat", {"b"}, {"tp", "1"}}), Contains("each once"));
  CHECK_THROWS_WITH(add_shared_flat(to, to, {"flat", {"c"}, {"dp"}}),
                    Contains("buffers of earlier lines, found 'c'"));
  to.add({Rank{0}, "own", {8}, DType::BF16, {{w, box_of({4, 2}), 0, {2, 1}}}});
  CHECK_THROWS_WITH(add_shared_flat(to, to, {"flat", {"own"}, {"dp"}}),
                    Contains("buffers on one mesh, found 'own'"));
  // Nothing was added on the way.
  CHECK_FALSE(to.find_any("flat"));
  add_shared_flat(to, to, {"flat", {"b"}, {"tp"}});
  CHECK(to.buffers()[*to.find(Rank{3}, "flat")].shape == Shape{2});
}
