// SPDX-License-Identifier: BSD-3-Clause
// An n-d array of global ranks (PyTorch's DeviceMesh): 1 to 5 axes, named or not, and at most 2^20
// ranks in any order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace reshard {

// Coordinates of a rank in its mesh, one entry per axis; unused entries are 0.
using MeshCoordinate = std::array<std::int32_t, kMaxAxes>;

class Mesh {
 public:
  // Row-major `ranks` of an array of `shape`; `names` is empty or has one per axis. Throws
  // InputError for 0 axes, an axis of size < 1, more than 5 axes or 2^20 ranks, a number of ranks
  // that does not fit the shape, a repeated, negative or too large rank, or a repeated name.
  Mesh(std::vector<std::int32_t> shape, std::vector<Rank> ranks,
       std::vector<std::string> names = {});
  // Ranks first, first+1, ...
  static Mesh row_major(std::vector<std::int32_t> shape, Rank first = Rank{0},
                        std::vector<std::string> names = {});

  int axes() const { return static_cast<int>(shape_.size()); }
  std::int32_t axis_size(int axis) const { return shape_[axis]; }
  const std::vector<std::int32_t>& shape() const { return shape_; }
  const IndexVector<int, std::string>& names() const { return names_; }

  // Number of ranks. A *position* is an index in row-major order, 0 .. size()-1.
  std::int32_t size() const { return static_cast<std::int32_t>(ranks_.size()); }
  const std::vector<Rank>& ranks() const { return ranks_; }
  Rank rank_at(std::int32_t position) const { return ranks_[position]; }
  std::optional<std::int32_t> position_of(Rank rank) const;
  MeshCoordinate coordinate(std::int32_t position) const;
  std::int32_t position_at(const MeshCoordinate& coordinate) const;
  // Whether rank i is at position i.
  bool counts_from_zero() const { return consecutive_ && ranks_.front() == Rank{0}; }
  // Row-major distance in positions between neighbours along `axis`.
  std::int32_t stride(int axis) const { return strides_[axis]; }

  // Same shape and the same ranks at the same positions; names are ignored.
  friend bool operator==(const Mesh& a, const Mesh& b) {
    return a.shape_ == b.shape_ && a.ranks_ == b.ranks_;
  }

 private:
  IndexVector<int, std::int32_t> shape_, strides_;
  IndexVector<std::int32_t, Rank> ranks_;
  IndexVector<int, std::string> names_;
  bool consecutive_ = false;                            // ranks_[i] == ranks_[0] + i
  std::vector<std::pair<Rank, std::int32_t>> by_rank_;  // ascending; empty if consecutive
};

using MeshRef = std::shared_ptr<const Mesh>;

// Reads "4x4", "dp=4,tp=4", "[[0,1],[2,3]]" (which names its ranks), or what PyTorch prints:
// "DeviceMesh('cuda', [[0, 1], [2, 3]], mesh_dim_names=('dp', 'tp'))" or "DeviceMesh((dp=2, tp=2),
// 'cuda', stride=(2, 1))"; also the meshes of JAX and Shardy. If the text names no ranks, `ranks`
// does, such as "0-7" or "0-3,8-11", in row-major order; if that is empty, they follow the strides,
// or are 0..n-1. Throws InputError naming `field`.
Mesh parse_mesh(std::string_view text, std::string_view ranks = {},
                std::string_view field = "mesh");
// "4x4" or "dp=4,tp=4".
std::string shape_text(const Mesh& mesh);
// "0-7", "0-3,8-11", "3,1,2": in the order given, consecutive ranks as ranges.
std::string ranks_text(const std::vector<Rank>& ranks);
// Reads what ranks_text writes. Throws InputError naming `field`.
std::vector<Rank> parse_ranks(std::string_view text, std::string_view field);

}  // namespace reshard
