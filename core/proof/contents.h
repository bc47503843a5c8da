// SPDX-License-Identifier: BSD-3-Clause
// What the proof knows about one buffer on one rank: disjoint boxes, each with the origin of its
// elements and the step that wrote them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/layout/box.h"

namespace reshard {

// A value in the proof: which addends were folded into it, and what it was divided by. Values are
// interned, so equal values have equal ids.
//
// An id is an index of a (set of addends, divisor). kPadding: filled zeros, which may reach the
// destination only where S->P(sum) leaves zeros. kMixture: padding folded with values, which must
// never reach it.
using FoldId = std::int32_t;
inline constexpr FoldId kPadding = -1;
inline constexpr FoldId kMixture = -2;

class FoldSets {
 public:
  // Addends ascending, each once.
  FoldId of(const std::vector<std::int64_t>& addends, std::int64_t divisor);
  // The fold of two values; nullopt if they share an addend or were divided differently.
  std::optional<FoldId> join(FoldId a, FoldId b);
  // nullopt if the divisor would exceed 2^62.
  std::optional<FoldId> divide(FoldId a, std::int64_t divisor);

 private:
  // Half-open, ascending, with gaps between them.
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  struct Value {
    Ranges addends;
    std::int64_t divisor;
    friend auto operator<=>(const Value&, const Value&) = default;
  };
  FoldId intern(Value value);
  static std::optional<Ranges> merged(const Ranges& a, const Ranges& b);

  std::vector<Value> values_;
  std::map<Value, FoldId> ids_;
  std::map<std::pair<FoldId, FoldId>, std::optional<FoldId>> joins_;
};

// Elements of `box` (local): the global index is the local index + shift, the value is `fold`.
struct KnownBox {
  Box box;
  DimVector shift;
  FoldId fold;
  std::int32_t writer;  // step; -1: source elements, present from the start
};

class Contents {
 public:
  explicit Contents(int dims = 1) : dims_(dims) {}

  std::size_t size() const { return values_.size() / stride(); }
  KnownBox piece(std::size_t i) const;
  void write(const KnownBox& piece);
  // Calls visit(piece cut to `box`) for every piece that meets `box`; returns the volume they
  // cover. Pieces that overlap count twice; first_overlap finds those at the end.
  template <class Visit>
  std::int64_t read(const Box& box, Visit&& visit) const {
    std::int64_t covered = 0;
    auto look = [&](std::size_t i) {
      if (!meets(i, box)) return;
      KnownBox found = piece(i);
      cut_to(found.box, box);
      covered += found.box.volume();
      visit(found);
    };
    if (size() <= kScanLimit) {
      for (std::size_t i = 0; i < size(); ++i) look(i);
      return covered;
    }
    index_all();
    for (const Tree& tree : trees_) look_in(tree, box, look);
    return covered;
  }
  std::int64_t volume() const { return volume_; }
  // Two pieces that overlap, if any. O(n log n) for pieces that straight cuts can separate, as they
  // can those of mesh layouts; the rest are compared pair by pair.
  std::optional<std::pair<std::size_t, std::size_t>> first_overlap() const;

 private:
  static constexpr std::size_t kScanLimit = 16;
  std::size_t stride() const { return 3 * to_index(dims_) + 1; }
  const std::int64_t* at(std::size_t i) const { return values_.data() + i * stride(); }
  std::int64_t lo(std::size_t i, int d) const { return at(i)[3 * d]; }
  std::int64_t hi(std::size_t i, int d) const { return at(i)[3 * d + 1]; }
  bool meets(std::size_t i, const Box& box) const;
  bool overlap(std::size_t i, std::size_t j) const;
  using Numbers = std::vector<std::uint32_t>;
  // Pieces halved again and again along the dim in which most of them are side by side, down to
  // leaves of a few. Node n has the halves 2n + 1 and 2n + 2; a node's bounds are the lowest lo and
  // the highest hi of its pieces, dim by dim.
  struct Tree {
    Numbers order;
    std::vector<std::int64_t> bounds;
    std::int64_t* bounds_of(std::size_t node, int dims) {
      return bounds.data() + node * 2 * to_index(dims);
    }
  };
  static constexpr std::size_t kLeaf = 8;
  void index_all() const;
  Tree tree_of(Numbers pieces) const;
  void divide(Tree& tree, std::size_t node, std::size_t begin, std::size_t end) const;
  void halve_sorted(Tree& tree, std::size_t node, std::size_t begin, std::size_t end) const;
  struct Spread;
  using Spreads = std::array<Spread, kMaxDims>;  // by dim
  Spreads spreads_of(const Tree& tree, std::size_t begin, std::size_t end) const;
  bool bounds_meet(const Tree& tree, std::size_t node, const Box& box) const {
    const std::int64_t* at = tree.bounds.data() + node * 2 * to_index(dims_);
    for (int d = 0; d < dims_; ++d, at += 2)
      if (at[0] >= box.hi[d] || at[1] <= box.lo[d]) return false;
    return true;
  }
  // Calls look(piece) for the pieces of every leaf with bounds that meet the box.
  template <class Look>
  void look_in(const Tree& tree, const Box& box, Look&& look) const {
    struct Range {
      std::size_t node, begin, end;
    };
    std::array<Range, 64> left;  // at most one per level, and there are fewer than 2^32 pieces
    std::size_t count = 0;
    left[count++] = {0, 0, tree.order.size()};
    while (count > 0) {
      auto [node, begin, end] = left[--count];
      if (!bounds_meet(tree, node, box)) continue;
      if (end - begin <= kLeaf) {
        for (std::size_t k = begin; k < end; ++k) look(tree.order[k]);
        continue;
      }
      std::size_t middle = begin + (end - begin) / 2;
      left[count++] = {2 * node + 2, middle, end};
      left[count++] = {2 * node + 1, begin, middle};
    }
  }
  // Sorts the pieces of this range by lo along a dim, then by number.
  void sort_along(int d, Numbers::iterator begin, Numbers::iterator end) const;
  std::optional<std::pair<std::size_t, std::size_t>> overlap_among(Numbers& pieces,
                                                                   std::size_t begin,
                                                                   std::size_t end) const;

  int dims_;
  std::vector<std::int64_t> values_;  // per piece: lo, hi, shift by dim; (fold, writer) packed
  std::int64_t volume_ = 0;           // of all pieces
  // Cover the first indexed_ pieces. Each has more than twice as many as the next, so alternating
  // writes and reads do not sort everything each time.
  mutable std::vector<Tree> trees_;
  mutable std::size_t indexed_ = 0;
};

}  // namespace reshard
