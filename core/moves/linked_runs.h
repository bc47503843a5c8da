// SPDX-License-Identifier: BSD-3-Clause
// Turns the index lists of a block, one per dim, into the moves that carry it: the product of the
// lists' runs.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/moves/messages.h"

namespace reshard {

// Indices that are consecutive in both buffers of a move.
struct LinkedRun {
  std::int64_t source_lo, destination_lo, size;
};

// Collects moves and joins those that continue each other along dim 0, as neighbouring blocks often
// do.
class MoveSink {
 public:
  explicit MoveSink(MoveList& out) : out_(out) {}
  void push(const Move& move) {
    if (held_ && continues(move)) {
      last_.extents[0] += move.extents[0];
      return;
    }
    flush();
    last_ = move;
    held_ = true;
  }
  void flush() {
    if (!held_) return;
    if (out_.size() >= kMaxMoves)
      throw InputError(
          "expected local copies of at most 2^24 boxes around a collective, found more "
          "(use fewer ranks or runs)");
    out_.push_back(last_);
    held_ = false;
  }

 private:
  bool continues(const Move& move) const {
    if (move.source_lo[0] != last_.source_lo[0] + last_.extents[0] ||
        move.destination_lo[0] != last_.destination_lo[0] + last_.extents[0])
      return false;
    for (int d = 1; d < out_.dims(); ++d)
      if (move.source_lo[d] != last_.source_lo[d] ||
          move.destination_lo[d] != last_.destination_lo[d] || move.extents[d] != last_.extents[d])
        return false;
    return true;
  }

  MoveList& out_;
  Move last_{};
  bool held_ = false;
};

// The linked runs of one block per dim; the block's moves are their product.
class LinkedRuns {
 public:
  explicit LinkedRuns(int dims) : dims_(dims) {}

  void clear(int d) { runs_[at(d)].clear(); }
  void add(int d, std::int64_t source_lo, std::int64_t destination_lo, std::int64_t size) {
    std::vector<LinkedRun>& runs = runs_[at(d)];
    if (!runs.empty() && runs.back().source_lo + runs.back().size == source_lo &&
        runs.back().destination_lo + runs.back().size == destination_lo)
      runs.back().size += size;
    else
      runs.push_back({source_lo, destination_lo, size});
  }
  const std::vector<LinkedRun>& of(int d) const { return runs_[at(d)]; }
  // Whether the runs cover a whole destination of this shape.
  bool fill(const Shape& shape) const {
    for (int d = 0; d < dims_; ++d) {
      std::int64_t size = 0;
      for (const LinkedRun& run : of(d)) size += run.size;
      if (size != shape[d]) return false;
    }
    return true;
  }

  // Appends the product of the runs, with `*_shift` added along dim 0.
  void push_moves(BufferId source, BufferId destination, std::int64_t source_shift,
                  std::int64_t destination_shift, MoveSink& moves) const {
    for (int d = 0; d < dims_; ++d)
      if (of(d).empty()) return;
    DimVector index(dims_);
    Move move{source, destination, DimVector(dims_), DimVector(dims_), DimVector(dims_)};
    do {
      for (int d = 0; d < dims_; ++d) {
        const LinkedRun& run = of(d)[to_index(index[d])];
        move.source_lo[d] = run.source_lo + (d == 0 ? source_shift : 0);
        move.destination_lo[d] = run.destination_lo + (d == 0 ? destination_shift : 0);
        move.extents[d] = run.size;
      }
      moves.push(move);
    } while (next_index(index, [this](int d) { return of(d).size(); }));
  }

  // Appends the part of a destination of this shape that the product of the runs leaves out, as
  // disjoint boxes, with `shift` added along dim 0.
  void push_rest(const Shape& shape, std::int64_t shift, std::vector<Box>& rest) {
    if (fill(shape)) return;
    for (int d = 0; d < dims_; ++d) {
      join(d);
      const std::vector<std::pair<std::int64_t, std::int64_t>>& reached = reached_[at(d)];
      if (reached.size() == 1 && reached[0] == std::pair(std::int64_t{0}, shape[d])) continue;
      DimVector before(d);
      do {
        Box box = box_of(shape);
        for (int e = 0; e < d; ++e)
          std::tie(box.lo[e], box.hi[e]) = reached_[at(e)][to_index(before[e])];
        box.lo[d] = 0;
        for (auto [lo, hi] : reached) {
          box.hi[d] = lo;
          push_shifted(box, shift, rest);
          box.lo[d] = hi;
        }
        box.hi[d] = shape[d];
        push_shifted(box, shift, rest);
      } while (next_index(before, [this](int e) { return reached_[at(e)].size(); }));
      if (reached.empty()) return;
    }
  }

 private:
  static void push_shifted(Box box, std::int64_t shift, std::vector<Box>& out) {
    if (box.empty()) return;
    box.lo[0] += shift;
    box.hi[0] += shift;
    out.push_back(box);
  }
  // Computes the ranges that the runs cover in the destination, with neighbours joined.
  void join(int d) {
    std::vector<std::pair<std::int64_t, std::int64_t>>& out = reached_[at(d)];
    out.clear();
    for (const LinkedRun& run : of(d)) {
      if (out.empty() || out.back().second != run.destination_lo)
        out.emplace_back(run.destination_lo, run.destination_lo);
      out.back().second += run.size;
    }
  }
  static std::size_t at(int d) { return to_index(d); }
  int dims_;
  std::array<std::vector<LinkedRun>, kMaxDims> runs_;
  std::array<std::vector<std::pair<std::int64_t, std::int64_t>>, kMaxDims> reached_;
};

}  // namespace reshard
