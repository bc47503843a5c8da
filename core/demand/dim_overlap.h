// SPDX-License-Identifier: BSD-3-Clause
// Which source pieces have what a destination piece needs, dim by dim, if both layouts are
// products: their index sets are products of pieces, so the intersection of a destination shard
// with a source shard is a product of piece intersections, and one table per dim serves all pairs
// of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/zero_axes.h"

namespace reshard {

// Consecutive indices that a source piece and a destination piece share: in both local coordinates,
// and counted densely from the first shared index.
struct Fragment {
  std::int64_t source_lo, destination_lo, packed_lo, size;
};

// A source piece that overlaps a destination piece.
struct PieceOverlap {
  std::int64_t source_piece;
  std::int64_t size;  // shared indices
  std::uint32_t first_fragment, fragment_count;
};

class DimOverlap {
 public:
  // `dim` can be 0 for a 0-d tensor, which is planned as one of shape (1).
  DimOverlap(const Request& request, const ZeroAxes& zero_axes, int dim);

  std::int64_t destination_pieces() const {
    return static_cast<std::int64_t>(begins_.size() - 1) / shares_;
  }
  // The overlaps within a share of the zero axes, ascending by source piece.
  std::span<const PieceOverlap> of(std::int64_t destination_piece, std::int64_t share) const {
    auto at = to_index(destination_piece * shares_ + share);
    return std::span(overlaps_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }
  std::span<const PieceOverlap> of_all_shares(std::int64_t destination_piece) const {
    auto from = begins_[to_index(destination_piece * shares_)],
         to = begins_[to_index((destination_piece + 1) * shares_)];
    return std::span(overlaps_).subspan(from, to - from);
  }
  std::span<const Fragment> fragments(const PieceOverlap& overlap) const {
    return std::span(fragments_).subspan(overlap.first_fragment, overlap.fragment_count);
  }

 private:
  void add_piece(Runs destination, const std::vector<PieceRun>& source_runs,
                 const ZeroAxes& zero_axes, int dim);

  std::int64_t shares_;  // per destination piece
  std::vector<Fragment> fragments_;
  std::vector<PieceOverlap> overlaps_;
  std::vector<std::size_t> begins_{0};
};

// One per plan dim; none unless both layouts are products.
std::vector<DimOverlap> overlaps_of(const Request& request, const ZeroAxes& zero_axes);

// Mesh positions by pieces: the ranks that hold a given piece in every dim are at the sum of the
// pieces' bases plus each of the offsets along axes that do not shard.
class CellPositions {
 public:
  // The layout must be a product.
  explicit CellPositions(const Layout& layout);

  // How much piece `piece` of plan dim `dim` adds to the position.
  std::int32_t base(int dim, std::int64_t piece) const {
    return bases_[to_index(dim)][to_index(piece)];
  }
  std::int64_t piece_count(int dim) const {
    return static_cast<std::int64_t>(bases_[to_index(dim)].size());
  }
  // Along Replicate axes: the replicas.
  const std::vector<std::int32_t>& replica_offsets() const { return replica_offsets_; }
  // Along Partial axes, by addend index.
  const std::vector<std::int32_t>& addend_offsets() const { return addend_offsets_; }

 private:
  std::vector<std::vector<std::int32_t>> bases_;
  std::vector<std::int32_t> replica_offsets_, addend_offsets_;
};

// Calls visit(index per dim) for every combination of 0 <= index[d] < sizes[d], last dim fastest.
template <class Visit>
void for_each_combination(std::span<const std::size_t> sizes, Visit&& visit) {
  std::array<std::size_t, kMaxDims> at{};
  for (std::size_t size : sizes)
    if (size == 0) return;
  for (;;) {
    visit(std::span<const std::size_t>(at.data(), sizes.size()));
    std::size_t d = sizes.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace reshard
