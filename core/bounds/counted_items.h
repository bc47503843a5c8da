// SPDX-License-Identifier: BSD-3-Clause
// Which ranks hold and which ranks need the items of a tensor, as the bounds count them.
//
// An *item* is a part with the same holders and needers for all of its elements (as in
// core/demand/items.h): the intersection of a source cell and a destination cell if both layouts
// are products, otherwise a box. Kept Partial axes (P->P) multiply the elements: addends at
// different kept coordinates are different items, each with its own holders and needers. Along zero
// axes (S->P(sum)) a source cell has one coordinate; destination ranks at other coordinates hold
// zeros, which are not sent.
//
// Each list of holders or needers is kept once, however many items use it. Items are enumerated dim
// by dim and never stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/demand/demand.h"

namespace reshard {

// One rank in a list of holders or needers.
struct Member {
  std::int32_t rank;    // index in the job's ranks
  std::int64_t addend;  // which of the folded addends it holds; 0 for needers
  friend auto operator<=>(const Member&, const Member&) = default;
};

// Sorted lists of members.
struct MemberLists {
  std::vector<Member> members;
  std::vector<std::size_t> begins;  // one more than lists

  std::size_t size() const { return begins.size() - 1; }
  std::span<const Member> list(std::size_t i) const {
    return std::span(members).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// Index of `rank` in the job's ascending ranks. CheckFailure if it is not one of them.
std::int32_t index_in(const std::vector<Rank>& job, Rank rank);

class CountedItems {
 public:
  // Members are numbered by the kind's slots. It must outlive this.
  explicit CountedItems(const TensorKind& kind);

  const MemberLists& holders() const { return holders_; }
  const MemberLists& needers() const { return needers_; }

  // At most 2^60: one per pair of a source cell and a destination cell and kept coordinate.
  Int128 count() const;
  // Calls visit(list of holders, list of needers, elements > 0) for each.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    if (const BoxItems* boxes = kind_.boxes()) {
      for (const EndedBox& box : boxes->boxes)
        visit(to_index(box.ends), to_index(box.ends), box.box.volume());
      return;
    }
    walk(0, 0, 0, 1, [&](std::int64_t source, std::int64_t destination, std::int64_t elements) {
      for (std::int64_t kept = 0; kept < kept_; ++kept)
        visit(to_index(source * kept_ + kept),
              to_index((destination * kept_ + kept) * zeros_ + zero_of_[to_index(source)]),
              elements);
    });
  }

 private:
  // The number of elements (> 0) that piece `source` and piece `destination` of one dim share.
  struct SharedPieces {
    std::int64_t source, destination, size;
    auto operator<=>(const SharedPieces&) const = default;
  };
  struct Dim {
    std::vector<SharedPieces> overlaps;
    std::int64_t source_pieces, destination_pieces;
  };
  struct ListedMember {
    std::int64_t list;
    Member member;
    auto operator<=>(const ListedMember&) const = default;
  };

  void list_cells();
  void list_ends();
  static MemberLists lists_of(std::int64_t count, std::vector<ListedMember> listed);

  template <typename Visit>
  void walk(std::size_t dim, std::int64_t source, std::int64_t destination, std::int64_t elements,
            const Visit& visit) const {
    if (dim == dims_.size()) return visit(source, destination, elements);
    const Dim& here = dims_[dim];
    for (const SharedPieces& overlap : here.overlaps)
      walk(dim + 1, source * here.source_pieces + overlap.source,
           destination * here.destination_pieces + overlap.destination, elements * overlap.size,
           visit);
  }

  const TensorKind& kind_;
  MemberLists holders_, needers_;
  // If both layouts are products: the list of a source cell and a kept coordinate k is number
  // cell * kept + k, that of a destination cell (cell * kept + k) * zeros + z.
  std::int64_t kept_ = 1, zeros_ = 1;
  std::vector<std::int64_t> zero_of_;  // by source cell: its zero coordinate
  std::vector<Dim> dims_;
};

}  // namespace reshard
