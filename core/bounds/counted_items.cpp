// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/counted_items.h"

#include <algorithm>

#include "core/base/errors.h"

namespace reshard {

std::int32_t index_in(const std::vector<Rank>& job, Rank rank) {
  auto at = std::lower_bound(job.begin(), job.end(), rank);
  RESHARD_CHECK(at != job.end() && *at == rank, "a rank of the request is not in the job");
  return static_cast<std::int32_t>(at - job.begin());
}

namespace {

// A coordinate's index among the kept addends and among the folded addends.
struct AddendPlace {
  std::int64_t kept = 0, folded = 0;
};

AddendPlace addend_place(const FoldMeaning& fold, const MeshCoordinate& coordinate) {
  AddendPlace place;
  for (const FoldMeaning::Axis& axis : fold.axes) {
    std::int64_t& part = axis.folded ? place.folded : place.kept;
    part = part * axis.size + coordinate[to_index(axis.axis)];
  }
  return place;
}

}  // namespace

CountedItems::CountedItems(const TensorKind& kind) : kind_(kind) {
  if (kind.product() == nullptr) {
    list_ends();
    return;
  }
  list_cells();
  const std::vector<DimOverlap>& overlaps = kind.product()->overlaps;
  for (std::size_t d = 0; d < overlaps.size(); ++d) {
    const DimOverlap& table = overlaps[d];
    Dim& dim = dims_.emplace_back();
    dim.source_pieces = kind.product()->source.piece_count(static_cast<int>(d));
    dim.destination_pieces = table.destination_pieces();
    for (std::int64_t piece = 0; piece < dim.destination_pieces; ++piece)
      for (const PieceOverlap& overlap : table.of_all_shares(piece))
        dim.overlaps.push_back({overlap.source_piece, piece, overlap.size});
    std::sort(dim.overlaps.begin(), dim.overlaps.end());
  }
}

Int128 CountedItems::count() const {
  if (kind_.boxes() != nullptr) return static_cast<std::int64_t>(kind_.boxes()->boxes.size());
  Int128 count = kept_;
  for (const Dim& dim : dims_) count *= static_cast<std::int64_t>(dim.overlaps.size());
  return count;
}

void CountedItems::list_cells() {
  const Request& request = kind_.request();
  const FoldMeaning& fold = request.fold();
  const Layout &source = request.source(), &destination = request.destination();
  kept_ = fold.addend_count / fold.fold_count;
  for (int axis : fold.zero_axes) zeros_ *= destination.mesh().axis_size(axis);
  zero_of_.assign(to_index(source.cell_count()), 0);
  std::vector<ListedMember> held, needed;
  for (std::int32_t position = 0; position < source.mesh().size(); ++position) {
    AddendPlace place = addend_place(fold, source.mesh().coordinate(position));
    std::int64_t cell = source.cell_of(position);
    zero_of_[to_index(cell)] = request.zero_coordinate(position);
    held.push_back(
        {cell * kept_ + place.kept, {kind_.source_slot[to_index(position)], place.folded}});
  }
  for (std::int32_t position = 0; position < destination.mesh().size(); ++position) {
    // Kept axes exist only if both meshes have the same shape, so a destination coordinate has an
    // addend place too.
    std::int64_t kept =
        kept_ > 1 ? addend_place(fold, destination.mesh().coordinate(position)).kept : 0;
    needed.push_back({(destination.cell_of(position) * kept_ + kept) * zeros_ +
                          request.zero_coordinate(position),
                      {kind_.destination_slot[to_index(position)], 0}});
  }
  holders_ = lists_of(source.cell_count() * kept_, std::move(held));
  needers_ = lists_of(destination.cell_count() * kept_ * zeros_, std::move(needed));
}

void CountedItems::list_ends() {
  const std::vector<BoxEnds>& ends = kind_.boxes()->ends;
  std::vector<ListedMember> held, needed;
  for (std::size_t list = 0; list < ends.size(); ++list) {
    auto number = static_cast<std::int64_t>(list);
    for (const ShardPlace& place : ends[list].sources)
      held.push_back({number, {place.slot, place.addend}});
    for (Slot slot : ends[list].needing) needed.push_back({number, {slot, 0}});
  }
  auto count = static_cast<std::int64_t>(ends.size());
  holders_ = lists_of(count, std::move(held));
  needers_ = lists_of(count, std::move(needed));
}

MemberLists CountedItems::lists_of(std::int64_t count, std::vector<ListedMember> listed) {
  std::sort(listed.begin(), listed.end());
  MemberLists out;
  out.begins.assign(to_index(count) + 1, 0);
  for (const ListedMember& entry : listed) {
    ++out.begins[to_index(entry.list) + 1];
    out.members.push_back(entry.member);
  }
  for (std::size_t list = 1; list < out.begins.size(); ++list)
    out.begins[list] += out.begins[list - 1];
  return out;
}

}  // namespace reshard
