// SPDX-License-Identifier: BSD-3-Clause
// How random views, some of them invalid, are interpreted, and how shards pass through them by each
// of the rules, stays the same. To accept an intended change:
//
//   RESHARD_UPDATE_FIGURES=1 build/release/test_ops "drawn views*"
//
// rewrites tests/core/ops/data/drawn_views.txt; RESHARD_SHOW=view prints one operator's results.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>

#include "core/base/digest.h"
#include "core/base/errors.h"
#include "core/ops/views/view_rule.h"
#include "tests/core/ops/drawn_views.h"
#include "tests/support/pinned.h"

namespace reshard::test {
namespace {

constexpr const char* kViewsPath = "tests/core/ops/data/drawn_views.txt";
constexpr int kLines = 150, kViewsOfLine = 400;

// One number of one argument is otherwise.
void mistake(Prng& prng, OpAttributes& attributes) {
  if (attributes.all().empty()) return;
  auto [name, value] = prng.pick(attributes.all());
  OpValue& number =
      value.list.empty() ? value : value.list[to_index(prng.below(std::ssize(value.list)))];
  number.integer = prng.pick<std::int64_t>({number.integer + 1, number.integer - 1, -1, -2, 0, 1});
  attributes.set(name, value);
}

std::string words_of(const AxisShards& shards, std::size_t axes) {
  std::string out;
  for (std::size_t axis = 0; axis < axes; ++axis)
    out += fmt::format(" {}.{}.{}", static_cast<int>(shards[axis].kind), shards[axis].dim,
                       shards[axis].split_factor);
  return out;
}

// As the output could lie, mostly as `near` has it.
AxisShards drawn_shards(Prng& prng, AxisShards near, std::size_t axes, int dims) {
  for (std::size_t axis = 0; axis < axes && dims > 0; ++axis) {
    if (!prng.one_in(3)) continue;
    near[axis] = {prng.one_in(3) ? AxisShard::Kind::Strided : AxisShard::Kind::Plain,
                  static_cast<std::int8_t>(prng.below(dims)), 1};
    if (near[axis].kind == AxisShard::Kind::Strided)
      near[axis].split_factor = prng.pick<std::int64_t>({1, 2, 3, 4, 6, 8});
  }
  return near;
}

std::string answer(Prng& prng, DrawnView& view) {
  if (prng.one_in(5)) mistake(prng, view.attributes);
  std::size_t axes = view.mesh.size();
  try {
    TensorSpec input{{view.shape, DType::F32}, view.placements, prng.one_in(2)};
    ViewMap map = view_map(view.name, input.meta, view.attributes);
    std::string out = fmt::format("[{}]", text(map.output));
    for (int d = 0; d < map.output.size(); ++d)
      out += fmt::format(" {}.{}.{}.{}.{}.{}.{}", static_cast<int>(map.dim(d).kind),
                         map.dim(d).first, map.dim(d).last, map.dim(d).piece, map.dim(d).is_last,
                         map.dim(d).left, map.dim(d).right);
    AxisShards shards;
    for (std::size_t axis = 0; axis < axes; ++axis) shards[axis] = shard_of(view.placements[axis]);
    TorchViewShards torch = torch_view_shards(map, shards, view.mesh);
    out += fmt::format(" |{} ->{} {} {}", words_of(torch.wanted, axes), words_of(torch.out, axes),
                       torch.lost_axis, torch.refusal);
    for (int i = 0; i < 3; ++i) {
      AxisShards to = drawn_shards(prng, torch.out, axes, map.output.size());
      out += fmt::format(" {}", moved_axes(map, torch.wanted, to, view.mesh));
    }
    ViewResult result = propagate(map, input, view.mesh);
    out += fmt::format(" | {} -> {} {} {} {}", text(result.wanted), text(result.output),
                       result.of_view, !result.corrected.empty(), result.refusal);
    if (!result.refusal.empty()) return out;
    MeshRef mesh = std::make_shared<const Mesh>(Mesh::row_major(view.mesh));
    auto position = static_cast<std::int32_t>(prng.below(mesh->size()));
    Shape local = local_sizes(map, result.output, mesh, position);
    LocalView as = local_view(map, local);
    out += fmt::format(" | [{}] {}", text(local), as.name);
    for (const auto& [name, value] : as.attributes.all())
      out += fmt::format(" {}={}", name, text(value));
    return out;
  } catch (const InputError& error) {
    return error.what();
  }
}

std::string line_of(int number) {
  Prng prng(static_cast<std::uint64_t>(number));
  Hasher all;
  std::string first;
  for (int i = 0; i < kViewsOfLine; ++i) {
    DrawnView view = drawn_view(prng);
    std::string said = answer(prng, view);
    all.add(said);
    if (i == 0) first = text(view);
    if (std::getenv("RESHARD_SHOW")) fmt::print("{}\n  {}\n", text(view), said);
  }
  return fmt::format("{} {} ... {}", number, first, all.digest().hex().substr(0, 8));
}

TEST_CASE("drawn views carry shards as they did") { check_lines(kViewsPath, kLines, line_of); }

}  // namespace
}  // namespace reshard::test
