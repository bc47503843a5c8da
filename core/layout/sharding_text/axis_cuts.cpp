// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/sharding_text/axis_cuts.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/cursor.h"
#include "core/base/errors.h"
#include "core/base/units.h"

namespace reshard {

AxisCuts::AxisCuts(const Mesh& mesh, const Shape& shape, std::string_view field)
    : mesh_(mesh), shape_(shape), field_(field), named_(to_index(mesh.axes()), false) {
  out_.placements.assign(named_.size(), Placement::replicate());
  out_.order.assign(named_.size(), -1);
}

void AxisCuts::name(int axis) {
  if (named_[to_index(axis)])
    throw InputError(
        fmt::format("{}: expected every axis at most once, found {}", field_,
                    mesh_.names().empty() ? std::to_string(axis) : quoted(mesh_.names()[axis])));
  named_[to_index(axis)] = true;
}

void AxisCuts::cut(int axis, int dim, int position) {
  require_dims(std::max(dim + 1, dims()));
  name(axis);
  out_.placements[to_index(axis)] = Placement::shard(dim);
  out_.order[to_index(axis)] = position;
}

void AxisCuts::keep_whole(int axis) { name(axis); }

void AxisCuts::add_up(int axis) {
  name(axis);
  out_.placements[to_index(axis)] = Placement::partial();
}

void AxisCuts::require_dims(int found) const {
  if (found == dims()) return;
  throw InputError(
      fmt::format("{}: expected a sharding of {}, the dims of the shape, found one of {}", field_,
                  counted(dims(), "dim"), counted(found, "dim")));
}

PlacementList AxisCuts::take() {
  for (int dim = 0; dim < dims(); ++dim) check_tiles(dim);
  return std::move(out_);
}

// XLA cuts the whole length into as many equal tiles as there are; the last ones can be short or
// empty.
void AxisCuts::check_tiles(int dim) const {
  std::vector<std::pair<int, int>> stack;  // position, axis
  for (int axis = 0; axis < mesh_.axes(); ++axis) {
    const Placement& placement = out_.placements[to_index(axis)];
    if (placement.is_shard_like() && placement.dim == dim)
      stack.emplace_back(out_.order[to_index(axis)], axis);
  }
  std::sort(stack.begin(), stack.end());
  std::int64_t tiles = 1, length = shape_[dim];
  for (auto [position, axis] : stack) tiles *= mesh_.axis_size(axis);
  if (stack.size() < 2 || length % tiles == 0) return;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    Chunk nested{0, length};
    std::int64_t below = tiles;
    for (auto [position, axis] : stack) {
      below /= mesh_.axis_size(axis);
      Chunk next =
          chunk(nested.hi - nested.lo, mesh_.axis_size(axis), tile / below % mesh_.axis_size(axis));
      nested = {nested.lo + next.lo, nested.lo + next.hi};
    }
    Chunk flat = chunk(length, tiles, tile);
    bool empty = flat.lo == flat.hi && nested.lo == nested.hi;
    if (empty || (flat.lo == nested.lo && flat.hi == nested.hi)) continue;
    throw InputError(fmt::format(
        "{}: expected the length of dim {} to be divisible by its {} tiles, found {}: tile {} is "
        "{}..{} in XLA, {}..{} if {} axes cut in turn",
        field_, dim, tiles, length, tile, flat.lo, flat.hi, nested.lo, nested.hi, stack.size()));
  }
}

}  // namespace reshard
