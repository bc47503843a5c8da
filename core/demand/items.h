// SPDX-License-Identifier: BSD-3-Clause
// Splits the tensors of a kind into items. An *item* is the intersection of a source cell and a
// destination cell, for one choice of kept addends and of zero coordinates: all its elements have
// the same holders and the same needing ranks. Its elements are numbered densely, dim by dim, in
// *packed* coordinates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/demand/demand.h"

namespace reshard {

struct Item {
  std::vector<PieceOverlap> cell;            // per dim of the kind
  std::int32_t source_base;                  // base position of the source cell's holders
  std::int32_t need;                         // number of the (destination cell, choice) pair
  std::vector<Slot> needing;                 // ascending
  const std::vector<std::int64_t>* addends;  // to fold, ascending
  // Extents in packed coordinates, in a plan of so many dims.
  DimVector extents(int plan_dims) const {
    DimVector out(plan_dims - static_cast<int>(cell.size()), 1);
    for (const PieceOverlap& overlap : cell) out.push_back(overlap.size);
    return out;
  }
  std::int64_t elements() const {
    std::int64_t out = 1;
    for (const PieceOverlap& overlap : cell) out *= overlap.size;
    return out;
  }
};

class Items {
 public:
  // The kind must outlive this.
  explicit Items(const TensorKind& kind);

  // Calls visit(item) for each, ascending by (destination cell, choice, source cell).
  template <class Visit>
  void for_each(Visit&& visit) const {
    auto dims = kind_.overlaps.size();
    std::array<std::size_t, kMaxDims> pieces{};
    for (std::size_t d = 0; d < dims; ++d)
      pieces[d] = to_index(kind_.overlaps[d].destination_pieces());
    std::int32_t need = 0;
    for_each_combination(std::span<const std::size_t>(pieces.data(), dims),
                         [&](std::span<const std::size_t> piece) {
                           for (const Need& choice : needs_)
                             visit_cell(piece, choice, need++, visit);
                         });
  }

 private:
  // Ranks of one destination cell that need the same addends of the same shares: offsets from the
  // cell's base position.
  struct Need {
    std::vector<std::int32_t> offsets;
    std::vector<std::int64_t> addends;
    std::array<std::int64_t, kMaxDims> shares;  // per dim
  };

  template <class Visit>
  void visit_cell(std::span<const std::size_t> piece, const Need& choice, std::int32_t need,
                  Visit&& visit) const {
    std::int32_t base = 0;
    std::array<std::span<const PieceOverlap>, kMaxDims> rows;
    std::array<std::size_t, kMaxDims> sizes{};
    for (std::size_t d = 0; d < piece.size(); ++d) {
      auto at = static_cast<std::int64_t>(piece[d]);
      base += kind_.destination_cells.base(static_cast<int>(d), at);
      rows[d] = kind_.overlaps[d].of(at, choice.shares[d]);
      sizes[d] = rows[d].size();
    }
    Item item{{}, 0, need, {}, &choice.addends};
    for (std::int32_t offset : choice.offsets)
      item.needing.push_back(kind_.destination_slot[to_index(base + offset)]);
    std::sort(item.needing.begin(), item.needing.end());
    for_each_combination(std::span<const std::size_t>(sizes.data(), piece.size()),
                         [&](std::span<const std::size_t> at) {
                           item.cell.clear();
                           item.source_base = 0;
                           for (std::size_t d = 0; d < piece.size(); ++d) {
                             item.cell.push_back(rows[d][at[d]]);
                             item.source_base += kind_.source_cells.base(
                                 static_cast<int>(d), item.cell.back().source_piece);
                           }
                           visit(static_cast<const Item&>(item));
                         });
  }

  const TensorKind& kind_;
  std::vector<Need> needs_;
};

// Splits `box`, in packed coordinates of the item, into boxes that are consecutive in source,
// destination and packed coordinates. Calls visit(source_lo, destination_lo, packed_lo, extents)
// for each; packed_lo counts from the corner of `box`. If the box has more dims than the kind, all
// of these have, too.
template <class Visit>
void for_each_fragment(const TensorKind& kind, const Item& item, const Box& box, Visit&& visit) {
  std::array<std::vector<Fragment>, kMaxDims> cut;
  std::array<std::size_t, kMaxDims> counts{};
  int leading = box.dims() - static_cast<int>(item.cell.size());
  for (std::size_t d = 0; d < item.cell.size(); ++d) {
    int dim = leading + static_cast<int>(d);
    for (const Fragment& fragment : kind.overlaps[d].fragments(item.cell[d])) {
      std::int64_t lo = std::max(box.lo[dim], fragment.packed_lo),
                   hi = std::min(box.hi[dim], fragment.packed_lo + fragment.size);
      std::int64_t by = lo - fragment.packed_lo;
      if (lo < hi)
        cut[d].push_back(
            {fragment.source_lo + by, fragment.destination_lo + by, lo - box.lo[dim], hi - lo});
    }
    counts[d] = cut[d].size();
  }
  for_each_combination(std::span<const std::size_t>(counts.data(), item.cell.size()),
                       [&](std::span<const std::size_t> at) {
                         DimVector source_lo(leading, 0), destination_lo(leading, 0),
                             packed_lo(leading, 0), extents(leading, 1);
                         for (std::size_t d = 0; d < at.size(); ++d) {
                           const Fragment& fragment = cut[d][at[d]];
                           source_lo.push_back(fragment.source_lo);
                           destination_lo.push_back(fragment.destination_lo);
                           packed_lo.push_back(fragment.packed_lo);
                           extents.push_back(fragment.size);
                         }
                         visit(source_lo, destination_lo, packed_lo, extents);
                       });
}

}  // namespace reshard
