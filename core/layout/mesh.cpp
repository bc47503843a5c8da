// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/mesh.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/errors.h"

namespace reshard {
namespace {

bool runs_from_first(const std::vector<Rank>& ranks) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (to_int(ranks[i]) != to_int(ranks[0]) + static_cast<std::int32_t>(i)) return false;
  return true;
}

std::int64_t checked_size(const std::vector<std::int32_t>& shape) {
  if (shape.empty()) throw InputError("mesh: expected at least one axis, found none");
  if (shape.size() > kMaxAxes)
    throw InputError(
        fmt::format("mesh: expected at most {} axes, found {}", kMaxAxes, shape.size()));
  std::int64_t size = 1;
  for (std::int32_t extent : shape) {
    if (extent < 1)
      throw InputError(
          fmt::format("mesh: expected every axis to hold at least 1 rank, found {}", extent));
    size *= extent;
    if (size > kMaxRanks)
      throw InputError(fmt::format("mesh: expected at most {} ranks, found more", kMaxRanks));
  }
  return size;
}

}  // namespace

Mesh::Mesh(std::vector<std::int32_t> shape, std::vector<Rank> ranks, std::vector<std::string> names)
    : shape_(std::move(shape)), ranks_(std::move(ranks)), names_(std::move(names)) {
  std::int64_t size = checked_size(shape_);
  if (static_cast<std::int64_t>(ranks_.size()) != size)
    throw InputError(
        fmt::format("mesh: expected {} ranks for its shape, found {}", size, ranks_.size()));
  if (!names_.empty() && names_.size() != shape_.size())
    throw InputError(
        fmt::format("mesh: expected {} axis names, found {}", shape_.size(), names_.size()));
  for (std::size_t i = 0; i < names_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (names_[i] == names_[j])
        throw InputError(
            fmt::format("mesh: expected different axis names, found '{}' twice", names_[i]));
  for (Rank rank : ranks_)
    if (to_int(rank) < 0 || to_int(rank) >= kMaxRanks)
      throw InputError(fmt::format("mesh: expected ranks between 0 and {}, found {}", kMaxRanks - 1,
                                   to_int(rank)));

  strides_.assign(shape_.size(), 1);
  for (std::size_t axis = shape_.size(); axis-- > 1;)
    strides_[axis - 1] = strides_[axis] * shape_[axis];
  consecutive_ = runs_from_first(ranks_);
  if (consecutive_) return;
  by_rank_.reserve(ranks_.size());
  for (std::size_t i = 0; i < ranks_.size(); ++i)
    by_rank_.emplace_back(ranks_[i], static_cast<std::int32_t>(i));
  std::sort(by_rank_.begin(), by_rank_.end());
  for (std::size_t i = 1; i < by_rank_.size(); ++i)
    if (by_rank_[i].first == by_rank_[i - 1].first)
      throw InputError(
          fmt::format("mesh: expected different ranks, found {} twice", to_int(by_rank_[i].first)));
}

Mesh Mesh::row_major(std::vector<std::int32_t> shape, Rank first, std::vector<std::string> names) {
  std::vector<Rank> ranks(to_index(checked_size(shape)));
  for (std::size_t i = 0; i < ranks.size(); ++i)
    ranks[i] = Rank{to_int(first) + static_cast<std::int32_t>(i)};
  return Mesh(std::move(shape), std::move(ranks), std::move(names));
}

std::optional<std::int32_t> Mesh::position_of(Rank rank) const {
  if (consecutive_) {
    std::int32_t position = to_int(rank) - to_int(ranks_[0]);
    return position >= 0 && position < size() ? std::optional(position) : std::nullopt;
  }
  auto it = std::lower_bound(by_rank_.begin(), by_rank_.end(), std::pair(rank, std::int32_t{0}));
  return it != by_rank_.end() && it->first == rank ? std::optional(it->second) : std::nullopt;
}

MeshCoordinate Mesh::coordinate(std::int32_t position) const {
  RESHARD_CHECK(position >= 0 && position < size(), "a position of the mesh");
  MeshCoordinate out{};
  for (std::size_t axis = 0; axis < shape_.size(); ++axis)
    out[axis] = position / strides_[axis] % shape_[axis];
  return out;
}

std::int32_t Mesh::position_at(const MeshCoordinate& coordinate) const {
  std::int32_t position = 0;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis)
    position += coordinate[axis] * strides_[axis];
  return position;
}

}  // namespace reshard
