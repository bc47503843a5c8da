// SPDX-License-Identifier: BSD-3-Clause
// Which indices of one tensor dim a rank holds.
//
// Every placement of DTensor (Shard, _StridedShard, any nesting and order of them) gives a rank,
// per dim, an ascending list of global indices; its local index k is the k-th of them. Such a list
// is stored as runs of consecutive global indices. A rank's index set is the product over dims of
// its runs, that is a union of boxes, and never needs an element-wise list.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/layout/box.h"

namespace reshard {

// Global indices [global_lo, global_lo + size) at local indices [local_lo, local_lo + size). size >
// 0.
struct Run {
  std::int64_t global_lo, local_lo, size;
  std::int64_t global_hi() const { return global_lo + size; }
  std::int64_t local_hi() const { return local_lo + size; }
  friend bool operator==(const Run&, const Run&) = default;
};

// Ascending, disjoint, maximal (neighbours are merged), local indices dense from 0.
using Runs = std::span<const Run>;

std::int64_t size_of(Runs runs);

// The runs of several pieces of one dim in one allocation; pieces are numbered from 0.
class PieceTable {
 public:
  PieceTable() : begins_{0} {}
  int count() const { return static_cast<int>(begins_.size()) - 1; }
  Runs runs(std::int64_t piece) const {
    auto at = static_cast<std::size_t>(piece);
    return Runs(runs_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
  }
  std::int64_t size(std::int64_t piece) const {
    Runs list = runs(piece);
    return list.empty() ? 0 : list.back().local_hi();
  }

  // Append to the piece being built; merges with its last run where global indices continue.
  void add_run(std::int64_t global_lo, std::int64_t size);
  // Append local indices [local_lo, local_hi) of `from`, which must not point into this table.
  void add_slice(Runs from, std::int64_t local_lo, std::int64_t local_hi);
  void end_piece() { begins_.push_back(runs_.size()); }
  void reserve(std::size_t pieces) {
    runs_.reserve(pieces);
    begins_.reserve(pieces + 1);
  }

 private:
  std::vector<Run> runs_;
  std::vector<std::size_t> begins_;
};

// The runs of all pieces, ascending by global index, each with its piece.
std::vector<std::pair<Run, std::int64_t>> sorted_runs(const PieceTable& pieces);

// torch.chunk: piece r of `length` over n starts at min(r*c, length) with c = ceil(length/n) and
// holds at most c. n >= 1, 0 <= r < n.
struct Chunk {
  std::int64_t lo, hi;
};
constexpr Chunk chunk(std::int64_t length, std::int64_t n, std::int64_t r) {
  std::int64_t c = ceil_div(length, n);
  // r*c <= n*ceil(length/n) < length + n, no overflow within kMaxBytes.
  std::int64_t lo = r * c < length ? r * c : length;
  std::int64_t hi = lo + c < length ? lo + c : length;
  return {lo, hi};
}

}  // namespace reshard
