// SPDX-License-Identifier: BSD-3-Clause
// Random views: what each rank computes from its own shard is its part of the dense result.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "core/base/digest.h"
#include "core/ops/views/view_rule.h"
#include "tests/core/ops/drawn_views.h"
#include "tests/core/ops/view_arrays.h"
#include "tests/support/part.h"

namespace reshard::test {
namespace {

std::vector<Placement> of_layout(const OpPlacements& placements) {
  std::vector<Placement> out;
  for (const OpPlacement& p : placements)
    out.push_back(p.kind == OpPlacement::Kind::Shard ? Placement::shard(p.dim)
                  : p.kind == OpPlacement::Kind::StridedShard
                      ? Placement::strided_shard(p.dim, p.split_factor)
                      : Placement::replicate());
  return out;
}

// Whether each rank's view of its shard is its part of the whole view.
bool is_right(const DrawnView& view, const ViewMap& map, const std::vector<Placement>& wanted,
              const std::vector<Placement>& output) {
  MeshRef mesh = std::make_shared<const Mesh>(Mesh::row_major(view.mesh));
  IndexArray whole = counted(view.shape);
  IndexArray result = viewed(view.name, view.attributes, whole);
  REQUIRE(result.shape == map.output);
  Layout in(view.shape, DType::F32, mesh, wanted), out(map.output, DType::F32, mesh, output);
  bool copies = view.name == "expand" || view.name == "repeat";
  for (std::int32_t position = 0; position < mesh->size(); ++position) {
    IndexArray shard = part_of(whole, in, position), part = part_of(result, out, position);
    if (!copies && element_count(shard.shape) != element_count(part.shape)) return false;
    LocalView local = local_view(map, part.shape);
    if (!(viewed(local.name, local.attributes, shard) == part)) return false;
  }
  return true;
}

// What PyTorch says, where it says something.
bool torch_is_right(const DrawnView& view, const ViewMap& map) {
  AxisShards shards;
  for (std::size_t axis = 0; axis < view.mesh.size(); ++axis)
    shards[axis] = shard_of(view.placements[axis]);
  TorchViewShards torch = torch_view_shards(map, shards, view.mesh);
  REQUIRE(torch.refusal.empty());
  return torch.lost_axis < 0 &&
         is_right(view, map, of_layout(placements_of(view.placements, torch.wanted)),
                  of_layout(placements_of(view.placements, torch.out)));
}

// Written anew where an answer changes on purpose.
constexpr std::string_view kAnswers = "9f7b51ccd0b0d242730e3ab2c1bcc974";

TEST_CASE("views: every rank's part of the result is its own view") {
  Hasher answers;
  int as_torch = 0, refused = 0, wrong = 0, called_wrong = 0;
  Prng prng(13);
  for (int i = 0; i < 40000 / kOneOf; ++i) {
    DrawnView view = drawn_view(prng);
    INFO(text(view));
    TensorSpec spec{{view.shape, DType::F32}, view.placements};
    ViewMap map = view_map(view.name, spec.meta, view.attributes);
    ViewResult result = propagate(map, spec, view.mesh);
    answers.add(fmt::format("{} {} {} {} {};", text(result.wanted), text(result.output),
                            result.of_view, result.refusal, !result.corrected.empty()));
    if (result.refusal.empty()) {
      REQUIRE(is_right(view, map, of_layout(result.wanted), of_layout(result.output)));
    } else {
      bool loose_too = result.refusal.starts_with("Cannot shard unevenly");
      REQUIRE((map.kind == ViewKind::Strict || loose_too));
    }
    if (result.corrected.empty())
      ++(result.refusal.empty() ? as_torch : refused);
    else
      ++(result.refusal.empty() || !torch_is_right(view, map) ? wrong : called_wrong);
  }
  CHECK(as_torch > 30000 / kOneOf);
  CHECK(refused > 2000 / kOneOf);
  CHECK(wrong > 1000 / kOneOf);
  CHECK(called_wrong < 40);  // shards that agree by accident of short lengths
  if (kOneOf == 1) CHECK(answers.digest().hex() == kAnswers);
}

}  // namespace
}  // namespace reshard::test
