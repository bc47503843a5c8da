// SPDX-License-Identifier: BSD-3-Clause
// Look-ups go down trees of pieces. Overlaps are searched by cutting: sort along a dim, cut
// wherever no piece crosses, and continue inside each part along the other dims. The pieces of mesh
// layouts always separate that way; those that do not are compared pair by pair.
#include "core/proof/contents.h"

#include <algorithm>
#include <numeric>

#include "core/base/integers.h"

namespace reshard {

KnownBox Contents::piece(std::size_t i) const {
  const std::int64_t* values = at(i);
  KnownBox out{{DimVector(dims_), DimVector(dims_)},
               DimVector(dims_),
               static_cast<FoldId>(values[3 * dims_] >> 32),
               static_cast<std::int32_t>(values[3 * dims_])};
  for (int d = 0; d < dims_; ++d, values += 3) {
    out.box.lo[d] = values[0];
    out.box.hi[d] = values[1];
    out.shift[d] = values[2];
  }
  return out;
}

void Contents::write(const KnownBox& piece) {
  std::size_t used = values_.size();
  // One piece is the common case; a few are next.
  if (used == stride()) values_.reserve(4 * used);
  values_.resize(used + stride());
  std::int64_t* next = values_.data() + used;
  for (int d = 0; d < dims_; ++d, next += 3) {
    next[0] = piece.box.lo[d];
    next[1] = piece.box.hi[d];
    next[2] = piece.shift[d];
  }
  *next = std::int64_t{piece.fold} << 32 | static_cast<std::uint32_t>(piece.writer);
  volume_ += piece.box.volume();
}

bool Contents::meets(std::size_t i, const Box& box) const {
  for (int d = 0; d < dims_; ++d)
    if (lo(i, d) >= box.hi[d] || hi(i, d) <= box.lo[d]) return false;
  return true;
}

bool Contents::overlap(std::size_t i, std::size_t j) const {
  for (int d = 0; d < dims_; ++d)
    if (lo(i, d) >= hi(j, d) || hi(i, d) <= lo(j, d)) return false;
  return true;
}

// Checks first whether they are sorted already: layouts produce their pieces in order. Many are
// sorted next to their keys, which lie far apart in memory.
void Contents::sort_along(int d, Numbers::iterator begin, Numbers::iterator end) const {
  constexpr std::ptrdiff_t kFew = 32;
  auto before = [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(lo(a, d), a) < std::pair(lo(b, d), b);
  };
  if (std::is_sorted(begin, end, before)) return;
  if (end - begin <= kFew) return std::sort(begin, end, before);
  std::vector<std::pair<std::int64_t, std::uint32_t>> keyed;
  keyed.reserve(static_cast<std::size_t>(end - begin));
  for (auto at = begin; at != end; ++at) keyed.emplace_back(lo(*at, d), *at);
  std::sort(keyed.begin(), keyed.end());
  for (const auto& [key, number] : keyed) *begin++ = number;
}

void Contents::index_all() const {
  if (indexed_ == size()) return;
  Numbers pieces(size() - indexed_);
  std::iota(pieces.begin(), pieces.end(), static_cast<std::uint32_t>(indexed_));
  for (; !trees_.empty() && trees_.back().order.size() <= 2 * pieces.size(); trees_.pop_back())
    pieces.insert(pieces.begin(), trees_.back().order.begin(), trees_.back().order.end());
  trees_.push_back(tree_of(std::move(pieces)));
  indexed_ = size();
}

Contents::Tree Contents::tree_of(Numbers pieces) const {
  Tree out;
  out.order = std::move(pieces);
  std::size_t nodes = 1;
  for (std::size_t most = out.order.size(); most > kLeaf; most -= most / 2) nodes = 2 * nodes + 1;
  out.bounds.resize(nodes * 2 * to_index(dims_));
  divide(out, 0, 0, out.order.size());
  return out;
}

// How pieces lie along a dim.
struct Contents::Spread {
  std::int64_t lo, greatest_lo, hi;
  double extents = 0;  // of all pieces together
  // Nearly 1 where pieces lie side by side without gaps, 0 where they all begin together.
  double side_by_side() const {
    return static_cast<double>(greatest_lo - lo) / std::max(extents, 1.0);
  }
};

// One look at each piece: far down the tree they are far apart in memory.
Contents::Spreads Contents::spreads_of(const Tree& tree, std::size_t begin, std::size_t end) const {
  Spreads out;
  const auto dims = to_index(dims_);
  for (std::size_t d = 0; d < dims; ++d) {
    const std::int64_t* first = at(tree.order[begin]) + 3 * d;
    out[d] = {first[0], first[0], first[1]};
  }
  for (std::size_t k = begin; k < end; ++k) {
    const std::int64_t* values = at(tree.order[k]);
    for (std::size_t d = 0; d < dims; ++d, values += 3) {
      Spread& along = out[d];
      along.lo = std::min(along.lo, values[0]);
      along.greatest_lo = std::max(along.greatest_lo, values[0]);
      along.hi = std::max(along.hi, values[1]);
      along.extents += static_cast<double>(values[1] - values[0]);
    }
  }
  return out;
}

void Contents::divide(Tree& tree, std::size_t node, std::size_t begin, std::size_t end) const {
  // From here on two pieces at most lie abreast of each other, on average.
  constexpr double kInOneRow = 0.5;
  auto at = [&](std::size_t k) { return tree.order.begin() + static_cast<std::ptrdiff_t>(k); };
  if (end - begin <= kLeaf) return halve_sorted(tree, node, begin, end);
  const Spreads spreads = spreads_of(tree, begin, end);
  const auto best = std::max_element(
      spreads.begin(), spreads.begin() + dims_,
      [](const Spread& a, const Spread& b) { return a.side_by_side() < b.side_by_side(); });
  const int dim = static_cast<int>(best - spreads.begin());
  if (best->side_by_side() >= kInOneRow) {
    sort_along(dim, at(begin), at(end));
    return halve_sorted(tree, node, begin, end);
  }
  std::int64_t* bounds = tree.bounds_of(node, dims_);
  for (std::size_t d = 0; d < to_index(dims_); ++d) {
    bounds[2 * d] = spreads[d].lo;
    bounds[2 * d + 1] = spreads[d].hi;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  std::nth_element(at(begin), at(middle), at(end), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(lo(a, dim), a) < std::pair(lo(b, dim), b);
  });
  divide(tree, 2 * node + 1, begin, middle);
  divide(tree, 2 * node + 2, middle, end);
}

// The pieces of this range are sorted, or are a leaf's.
void Contents::halve_sorted(Tree& tree, std::size_t node, std::size_t begin,
                            std::size_t end) const {
  const std::size_t width = 2 * to_index(dims_);
  if (end - begin <= kLeaf) {
    std::int64_t* bounds = tree.bounds_of(node, dims_);
    for (std::size_t k = begin; k < end; ++k) {
      const std::int64_t* values = this->at(tree.order[k]);
      for (std::size_t d = 0; d < width; d += 2, values += 3) {
        bounds[d] = k == begin ? values[0] : std::min(bounds[d], values[0]);
        bounds[d + 1] = k == begin ? values[1] : std::max(bounds[d + 1], values[1]);
      }
    }
    auto at = [&](std::size_t k) { return tree.order.begin() + static_cast<std::ptrdiff_t>(k); };
    return std::sort(at(begin), at(end));
  }
  const std::size_t middle = begin + (end - begin) / 2;
  halve_sorted(tree, 2 * node + 1, begin, middle);
  halve_sorted(tree, 2 * node + 2, middle, end);
  std::int64_t* bounds = tree.bounds_of(node, dims_);
  const std::int64_t *low = tree.bounds_of(2 * node + 1, dims_),
                     *high = tree.bounds_of(2 * node + 2, dims_);
  for (std::size_t d = 0; d < width; d += 2) {
    bounds[d] = std::min(low[d], high[d]);
    bounds[d + 1] = std::max(low[d + 1], high[d + 1]);
  }
}

std::optional<std::pair<std::size_t, std::size_t>> Contents::first_overlap() const {
  if (size() <= kScanLimit) {
    for (std::size_t a = 0; a < size(); ++a)
      for (std::size_t b = a + 1; b < size(); ++b)
        if (overlap(a, b)) return std::pair(a, b);
    return std::nullopt;
  }
  Numbers pieces(size());
  std::iota(pieces.begin(), pieces.end(), 0U);
  // An explicit stack, because the depth depends on the plan's text.
  std::vector<std::pair<std::size_t, std::size_t>> parts{{0, size()}};
  while (!parts.empty()) {
    auto [begin, end] = parts.back();
    parts.pop_back();
    if (end - begin < 2) continue;
    bool cut = false;
    for (int d = 0; d < dims_ && !cut; ++d) {
      sort_along(d, pieces.begin() + static_cast<std::ptrdiff_t>(begin),
                 pieces.begin() + static_cast<std::ptrdiff_t>(end));
      std::int64_t reach = hi(pieces[begin], d);
      std::size_t part_begin = begin;
      for (std::size_t k = begin + 1; k < end; ++k) {
        if (lo(pieces[k], d) >= reach) {
          parts.emplace_back(part_begin, k);
          part_begin = k;
        }
        reach = std::max(reach, hi(pieces[k], d));
      }
      cut = part_begin != begin;
      if (cut) parts.emplace_back(part_begin, end);
    }
    if (cut) continue;
    if (auto found = overlap_among(pieces, begin, end)) return found;
  }
  return std::nullopt;
}

std::optional<std::pair<std::size_t, std::size_t>> Contents::overlap_among(Numbers& pieces,
                                                                           std::size_t begin,
                                                                           std::size_t end) const {
  for (std::size_t a = begin; a < end; ++a)
    for (std::size_t b = a + 1; b < end; ++b)
      if (overlap(pieces[a], pieces[b]))
        return std::pair<std::size_t, std::size_t>(pieces[a], pieces[b]);
  return std::nullopt;
}

FoldId FoldSets::intern(Value value) {
  auto [it, added] = ids_.try_emplace(std::move(value), static_cast<FoldId>(values_.size()));
  if (added) values_.push_back(it->first);
  return it->second;
}

FoldId FoldSets::of(const std::vector<std::int64_t>& addends, std::int64_t divisor) {
  Ranges ranges;
  for (std::int64_t addend : addends) {
    if (!ranges.empty() && ranges.back().second == addend)
      ++ranges.back().second;
    else
      ranges.emplace_back(addend, addend + 1);
  }
  return intern({std::move(ranges), divisor});
}

std::optional<FoldSets::Ranges> FoldSets::merged(const Ranges& a, const Ranges& b) {
  Ranges all;
  all.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  Ranges out;
  for (const auto& range : all) {
    if (!out.empty() && range.first < out.back().second) return std::nullopt;
    if (!out.empty() && range.first == out.back().second)
      out.back().second = range.second;
    else
      out.push_back(range);
  }
  return out;
}

std::optional<FoldId> FoldSets::join(FoldId a, FoldId b) {
  if (a < 0 || b < 0) return a == kPadding && b == kPadding ? kPadding : kMixture;
  auto [it, added] = joins_.try_emplace({a, b}, std::nullopt);
  if (!added) return it->second;
  const Value &x = values_[to_index(a)], &y = values_[to_index(b)];
  if (x.divisor != y.divisor) return std::nullopt;
  std::optional<Ranges> ranges = merged(x.addends, y.addends);
  if (!ranges) return std::nullopt;
  std::int64_t divisor = x.divisor;
  it->second = intern({std::move(*ranges), divisor});
  return it->second;
}

std::optional<FoldId> FoldSets::divide(FoldId a, std::int64_t divisor) {
  if (a < 0 || divisor == 1) return a;
  const Value& value = values_[to_index(a)];
  std::optional<std::int64_t> product = checked_product(value.divisor, divisor);
  if (!product) return std::nullopt;
  return intern({value.addends, *product});
}

}  // namespace reshard
