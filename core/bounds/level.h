// SPDX-License-Identifier: BSD-3-Clause
// Which sets must receive what at one level (single ranks, nodes, ...), and the least number of
// times that an element is received.
//
// A list of holders becomes a short list of sets, each with three facts about the addends: whether
// the set holds all of them, whether it is the only holder of one, and whether it holds one of the
// packing. A list of needers becomes a list of sets. Both are computed once per list; an item then
// merges two short lists:
//
//   X must receive                 X needs it and does not hold all addends
//   the complement of X must       another set needs it, and X is the only holder of some addend
//   receipts                       see bounds.h; their prices: price.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/integers.h"
#include "core/bounds/counted_items.h"
#include "core/bounds/price.h"

namespace reshard {

// One set among those that hold a list's addends.
struct Holding {
  std::int32_t set;
  bool complete = false;  // holds every addend
  bool sole = false;      // some addend is held here only
  bool packed = false;    // holds an addend of the packing
};

// `set_of`: per rank of the job; ranks outside every set share one extra set.
struct LevelView {
  std::vector<std::int32_t> set_of;
  std::int32_t sets = 0;  // without the extra set
  bool reduced_in_transit = false;
  bool has_fold_price = false;  // a price above 1 is worth trying
};

// The sets of every list, ascending, and the size of its packing: addends with pairwise disjoint
// holders.
class HoldingLists {
 public:
  HoldingLists(const MemberLists& holders, std::int64_t addends, const LevelView& level);
  std::span<const Holding> list(std::size_t i) const {
    return std::span(all_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }
  std::int64_t packing(std::size_t i) const { return packing_[i]; }

 private:
  std::vector<Holding> all_;
  std::vector<std::size_t> begins_{0};
  std::vector<std::int64_t> packing_;
};

// The sets of every list, ascending.
struct NeedLists {
  std::vector<std::int32_t> sets;
  std::vector<std::size_t> begins{0};
  std::span<const std::int32_t> list(std::size_t i) const {
    return std::span(sets).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// The counts of one level over all items.
class LevelCount {
 public:
  // Keeps a reference to `needers`.
  LevelCount(const MemberLists& holders, const MemberLists& needers, std::int64_t addends,
             const LevelView& level);

  // Returns the least number of receipts of one element by this level's sets.
  std::int64_t add(std::size_t holder_list, std::size_t needer_list, std::int64_t elements) {
    std::span<const Holding> holdings = holdings_.list(holder_list);
    std::int64_t packing = holdings_.packing(holder_list);
    std::span<const std::int32_t> needs = needs_.list(needer_list);
    std::int64_t lacking = 0;
    bool packed_need = false;
    auto at = holdings.begin(), end = holdings.end();
    for (std::int32_t set : needs) {
      while (at != end && at->set < set) ++at;
      bool holds = at != end && at->set == set;
      if (holds && at->packed) packed_need = true;
      if (holds && at->complete) continue;
      ++lacking;
      in_[to_index(set)] += elements;
    }
    for (const Holding& h : holdings)
      if (h.sole && (needs.size() > 1 || needs.front() != h.set))
        in_complement_[to_index(h.set)] += elements;
    auto needing = static_cast<std::int64_t>(needs.size());
    std::int64_t receipts = reduced_in_transit_ || packing == 1
                                ? lacking
                                : packing - 1 + needing - (packed_need ? 1 : 0);
    receipts_ += Int128{elements} * receipts;
    return receipts;
  }

  // Prices what `add` counted: `by_rank` receipts of one element by ranks, `by_set` by sets.
  void add_price(std::size_t holder_list, std::size_t needer_list, std::int64_t elements,
                 std::int64_t by_rank, std::int64_t by_set);

  // The demand in bytes, with `width` bytes per element.
  PriceDemand price(std::int64_t width) const;
  // Whether the set holds every addend of the list.
  bool complete(std::size_t holder_list, std::int32_t set) const;
  const std::vector<Int128>& in() const { return in_; }
  const std::vector<Int128>& in_complement() const { return in_complement_; }
  Int128 receipts() const { return receipts_; }

 private:
  HoldingLists holdings_;
  NeedLists needs_;
  std::vector<Int128> in_, in_complement_;  // elements per set
  bool reduced_in_transit_;
  Int128 receipts_ = 0;
  const MemberLists* needers_;
  PriceDemand price_;  // of elements
};

}  // namespace reshard
