// SPDX-License-Identifier: BSD-3-Clause
// Splits the tensors of a kind into items: parts with the same holders and the same needing ranks
// for all of their elements. If both layouts are products, an *item* is the intersection of a
// source cell and a destination cell, for one choice of kept addends and of zero coordinates;
// otherwise it is a box (box_items.h). Its elements are numbered densely, dim by dim, in *packed*
// coordinates.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/demand/demand.h"

namespace reshard {

struct Item {
  std::vector<PieceOverlap> cell;            // per dim, if both layouts are products
  std::int32_t source;                       // its holders: TensorKind::holder_set
  std::int32_t need;                         // number of its needing ranks
  std::vector<Slot> needing;                 // ascending
  const std::vector<std::int64_t>* addends;  // to fold, ascending
  Box box = {};                              // in global indices, if not both are products
  const BoxEnds* ends = nullptr;

  // Extents in packed coordinates, in a plan of `plan_dims` dims.
  DimVector extents(int plan_dims) const {
    int dims = ends != nullptr ? box.dims() : static_cast<int>(cell.size());
    DimVector out(plan_dims - dims, 1);
    for (int d = 0; d < dims; ++d)
      out.push_back(ends != nullptr ? box.extent(d) : cell[to_index(d)].size);
    return out;
  }
  std::int64_t elements() const {
    if (ends != nullptr) return box.volume();
    std::int64_t out = 1;
    for (const PieceOverlap& overlap : cell) out *= overlap.size;
    return out;
  }
};

// The addend of the item that the rank holds, if any.
inline std::optional<std::int64_t> held_addend(const TensorKind& kind, const Item& item,
                                               Slot slot) {
  std::optional<std::int64_t> held;
  if (item.ends != nullptr) {
    if (const ShardPlace* place = place_of(item.ends->sources, slot)) held = place->addend;
  } else if (const auto& standing = kind.product()->standings[to_index(slot)];
             standing && standing->base == item.source) {
    held = standing->addend;
  }
  bool wanted = held && std::binary_search(item.addends->begin(), item.addends->end(), *held);
  return wanted ? held : std::nullopt;
}

class Items {
 public:
  // The kind must outlive this.
  explicit Items(const TensorKind& kind);

  // Calls visit(item) for each, ascending by (destination cell, choice, source cell), or in the
  // order of the boxes.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (kind_.product() == nullptr) return for_each_box(visit);
    const std::vector<DimOverlap>& overlaps = kind_.product()->overlaps;
    auto dims = overlaps.size();
    std::array<std::size_t, kMaxDims> pieces{};
    for (std::size_t d = 0; d < dims; ++d) pieces[d] = to_index(overlaps[d].destination_pieces());
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
  void for_each_box(Visit&& visit) const {
    const BoxItems& items = *kind_.boxes();
    auto addends = static_cast<std::int32_t>(kind_.request().fold().addend_count);
    for (const EndedBox& box : items.boxes) {
      const BoxEnds& ends = items.ends[to_index(box.ends)];
      Item item{{},   box.ends * addends, box.ends, ends.needing, &needs_.front().addends, box.box,
                &ends};
      visit(static_cast<const Item&>(item));
    }
  }

  template <class Visit>
  void visit_cell(std::span<const std::size_t> piece, const Need& choice, std::int32_t need,
                  Visit&& visit) const {
    const TensorKind::Product& product = *kind_.product();
    std::int32_t base = 0;
    std::array<std::span<const PieceOverlap>, kMaxDims> rows;
    std::array<std::size_t, kMaxDims> sizes{};
    for (std::size_t d = 0; d < piece.size(); ++d) {
      auto at = static_cast<std::int64_t>(piece[d]);
      base += product.destination.base(static_cast<int>(d), at);
      rows[d] = product.overlaps[d].of(at, choice.shares[d]);
      sizes[d] = rows[d].size();
    }
    Item item{{}, 0, need, {}, &choice.addends};
    for (std::int32_t offset : choice.offsets)
      item.needing.push_back(kind_.destination_slot[to_index(base + offset)]);
    std::sort(item.needing.begin(), item.needing.end());
    for_each_combination(std::span<const std::size_t>(sizes.data(), piece.size()),
                         [&](std::span<const std::size_t> at) {
                           item.cell.clear();
                           item.source = 0;
                           for (std::size_t d = 0; d < piece.size(); ++d) {
                             item.cell.push_back(rows[d][at[d]]);
                             item.source += product.source.base(static_cast<int>(d),
                                                                item.cell.back().source_piece);
                           }
                           visit(static_cast<const Item&>(item));
                         });
  }

  const TensorKind& kind_;
  std::vector<Need> needs_;
};

// Converts indices given by for_each_fragment to local ones in the rank's source or destination.
inline DimVector in_source(const Item& item, Slot slot, const DimVector& lo) {
  return item.ends == nullptr ? lo : local_index(item.ends->sources, slot, lo);
}
inline DimVector in_destination(const Item& item, Slot slot, const DimVector& lo) {
  return item.ends == nullptr ? lo : local_index(item.ends->destinations, slot, lo);
}

// Splits `box`, in packed coordinates of the item, into boxes that are consecutive in source,
// destination and packed coordinates. Calls visit(source_lo, destination_lo, packed_lo, extents)
// for each; the first two are for in_source and in_destination, packed_lo counts from the corner of
// `box`. If the box has more dims than the kind, so do all of these.
template <class Visit>
void for_each_fragment(const TensorKind& kind, const Item& item, const Box& box, Visit&& visit) {
  if (item.ends != nullptr) {
    DimVector lo = box.lo;
    int before = lo.size() - item.box.dims();
    for (int d = 0; d < item.box.dims(); ++d) lo[before + d] += item.box.lo[d];
    visit(lo, lo, DimVector(lo.size(), 0), box.extents());
    return;
  }
  const std::vector<DimOverlap>& overlaps = kind.product()->overlaps;
  std::vector<Fragment> cut;  // dim by dim
  std::array<std::size_t, kMaxDims> counts{}, first{};
  int leading = box.dims() - static_cast<int>(item.cell.size());
  for (std::size_t d = 0; d < item.cell.size(); ++d) {
    int dim = leading + static_cast<int>(d);
    first[d] = cut.size();
    for (const Fragment& fragment : overlaps[d].fragments(item.cell[d])) {
      std::int64_t lo = std::max(box.lo[dim], fragment.packed_lo),
                   hi = std::min(box.hi[dim], fragment.packed_lo + fragment.size);
      std::int64_t by = lo - fragment.packed_lo;
      if (lo < hi)
        cut.push_back(
            {fragment.source_lo + by, fragment.destination_lo + by, lo - box.lo[dim], hi - lo});
    }
    counts[d] = cut.size() - first[d];
  }
  for_each_combination(std::span<const std::size_t>(counts.data(), item.cell.size()),
                       [&](std::span<const std::size_t> at) {
                         DimVector source_lo(leading, 0), destination_lo(leading, 0),
                             packed_lo(leading, 0), extents(leading, 1);
                         for (std::size_t d = 0; d < at.size(); ++d) {
                           const Fragment& fragment = cut[first[d] + at[d]];
                           source_lo.push_back(fragment.source_lo);
                           destination_lo.push_back(fragment.destination_lo);
                           packed_lo.push_back(fragment.packed_lo);
                           extents.push_back(fragment.size);
                         }
                         visit(source_lo, destination_lo, packed_lo, extents);
                       });
}

// ---- items by rank

// A part of what a rank needs, all of it with the same holders.
struct NeededPart {
  std::int32_t source;  // TensorKind::holder_set
  std::int64_t elements;
  std::span<const PieceOverlap> cell;  // if both layouts are products
  const Box* box = nullptr;            // otherwise
  const BoxEnds* ends = nullptr;
};

// Whether the rank holds the part's addend itself.
inline bool holds(const TensorKind& kind, const NeededPart& part, Slot slot, std::int64_t addend) {
  if (part.ends != nullptr) {
    const ShardPlace* place = place_of(part.ends->sources, slot);
    return place != nullptr && place->addend == addend;
  }
  const auto& standing = kind.product()->standings[to_index(slot)];
  return standing && standing->base == part.source && standing->addend == addend;
}

// Calls visit(part) for the parts that the rank at a position of the destination's mesh needs; with
// zero axes, only for those with values. Nothing may be folded.
template <class Visit>
void for_each_needed(const TensorKind& kind, std::int32_t position, Visit&& visit) {
  if (const BoxItems* items = kind.boxes()) {
    for (std::int32_t i : items->needed[to_index(kind.destination_slot[to_index(position)])]) {
      const EndedBox& box = items->boxes[to_index(i)];
      visit(NeededPart{box.ends * static_cast<std::int32_t>(kind.request().fold().addend_count),
                       box.box.volume(),
                       {},
                       &box.box,
                       &items->ends[to_index(box.ends)]});
    }
    return;
  }
  const TensorKind::Product& product = *kind.product();
  const Layout& layout = kind.request().destination();
  MeshCoordinate coordinate = layout.mesh().coordinate(position);
  std::array<std::span<const PieceOverlap>, kMaxDims> rows;
  std::array<std::size_t, kMaxDims> sizes{};
  auto dims = product.overlaps.size();
  for (std::size_t d = 0; d < dims; ++d) {
    int dim = static_cast<int>(d);
    std::int64_t piece = layout.dims() == 0 ? 0 : layout.piece_of(dim, coordinate);
    rows[d] = product.overlaps[d].of(piece, product.zero_axes.share_of(dim, coordinate));
    sizes[d] = rows[d].size();
  }
  for_each_combination(
      std::span<const std::size_t>(sizes.data(), dims), [&](std::span<const std::size_t> at) {
        std::array<PieceOverlap, kMaxDims> cell;
        NeededPart part{0, 1, std::span<const PieceOverlap>(cell.data(), dims)};
        for (std::size_t d = 0; d < dims; ++d) {
          cell[d] = rows[d][at[d]];
          part.source += product.source.base(static_cast<int>(d), cell[d].source_piece);
          part.elements *= cell[d].size;
        }
        visit(static_cast<const NeededPart&>(part));
      });
}

// Calls visit(lowest indices in the sender's source, in the receiver's destination, extents) for
// boxes of `plan_dims` dims.
template <class Visit>
void for_each_fragment(const TensorKind& kind, const NeededPart& part, Slot sender, Slot receiver,
                       int plan_dims, Visit&& visit) {
  int leading = plan_dims - kind.dims();
  if (part.ends != nullptr) {
    DimVector lo(leading, 0), extents(leading, 1);
    for (int d = 0; d < part.box->dims(); ++d) {
      lo.push_back(part.box->lo[d]);
      extents.push_back(part.box->extent(d));
    }
    visit(local_index(part.ends->sources, sender, lo),
          local_index(part.ends->destinations, receiver, lo), extents);
    return;
  }
  const std::vector<DimOverlap>& overlaps = kind.product()->overlaps;
  std::array<std::size_t, kMaxDims> counts{};
  for (std::size_t d = 0; d < part.cell.size(); ++d) counts[d] = part.cell[d].fragment_count;
  for_each_combination(std::span<const std::size_t>(counts.data(), part.cell.size()),
                       [&](std::span<const std::size_t> at) {
                         DimVector source_lo(leading, 0), destination_lo(leading, 0),
                             extents(leading, 1);
                         for (std::size_t d = 0; d < part.cell.size(); ++d) {
                           const Fragment& fragment = overlaps[d].fragments(part.cell[d])[at[d]];
                           source_lo.push_back(fragment.source_lo);
                           destination_lo.push_back(fragment.destination_lo);
                           extents.push_back(fragment.size);
                         }
                         visit(source_lo, destination_lo, extents);
                       });
}

}  // namespace reshard
