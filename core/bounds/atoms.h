// SPDX-License-Identifier: BSD-3-Clause
// Which ranks hold and which need each element, on the common refinement of source and destination
// pieces.
//
// A *cell* of a layout is one choice of a piece per dim; the ranks that hold it differ only along
// axes that do not shard. An *atom* is the intersection of a source cell and a destination cell:
// all its elements have the same holders and needers. Kept Partial axes (P->P) multiply the
// elements: addends at different kept coordinates are different items, each with its own holders
// and needers. So holders are listed per (source cell, kept coordinate) and needers per
// (destination cell, kept coordinate), each list once however many atoms use it, and the atoms are
// the products over dims of the overlaps of single pieces.
//
// Along zero axes (S->P(sum)) a source cell has one coordinate; destination ranks at other
// coordinates hold zeros, which nobody sends. So needers are also listed per zero coordinate, and
// an atom takes those at its source cell's coordinate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

// One rank in a list of holders or needers.
struct Member {
  std::int32_t rank;    // index in the job's ranks
  std::int64_t addend;  // which of the folded addends it holds; 0 for needers
  friend auto operator<=>(const Member&, const Member&) = default;
};

// Sorted lists of members, one per cell and kept coordinate k: list cell * kept + k. Needers also
// have one per zero coordinate z: list (cell * kept + k) * zeros + z.
struct MemberLists {
  std::vector<Member> members;
  std::vector<std::size_t> begins;  // one more than lists
  std::int64_t kept = 1, zeros = 1;

  std::size_t size() const { return begins.size() - 1; }
  std::span<const Member> list(std::size_t i) const {
    return std::span(members).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// Index of `rank` in the job's ascending ranks. CheckFailure if it is not one of them.
std::int32_t index_in(const std::vector<Rank>& job, Rank rank);

MemberLists holders_of(const Request& request, const std::vector<Rank>& job);
MemberLists needers_of(const Request& request, const std::vector<Rank>& job);
// The zero coordinate of every source cell.
std::vector<std::int64_t> zero_coordinates(const Request& request);

// The number of elements (> 0) that piece `source` and piece `destination` of one dim share.
struct SharedPieces {
  std::int64_t source, destination, size;
};

// All atoms of a request, enumerated dim by dim.
class Atoms {
 public:
  explicit Atoms(const Request& request);

  // At most 2^40: one per pair of a source cell and a destination cell.
  std::int64_t count() const;
  // Calls visit(source cell, destination cell, elements) for each.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    walk(0, 0, 0, 1, visit);
  }

 private:
  struct Dim {
    std::vector<SharedPieces> overlaps;
    std::int64_t source_pieces, destination_pieces;
  };

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

  std::vector<Dim> dims_;
};

}  // namespace reshard
