// SPDX-License-Identifier: BSD-3-Clause
#include "core/bounds/atoms.h"

#include <algorithm>

#include "core/base/errors.h"

namespace reshard {

std::int32_t index_in(const std::vector<Rank>& job, Rank rank) {
  auto at = std::lower_bound(job.begin(), job.end(), rank);
  RESHARD_CHECK(at != job.end() && *at == rank, "a rank of the request is not in the job");
  return static_cast<std::int32_t>(at - job.begin());
}

namespace {

// Index of the cell that the rank at `coordinate` holds; the last dim varies fastest, as in Atoms.
std::int64_t cell_of(const Layout& layout, const MeshCoordinate& coordinate) {
  std::int64_t cell = 0;
  for (int dim = 0; dim < layout.dims(); ++dim)
    cell = cell * layout.pieces(dim).count() + layout.piece_of(dim, coordinate);
  return cell;
}

std::int64_t cell_count(const Layout& layout) {
  std::int64_t count = 1;
  for (int dim = 0; dim < layout.dims(); ++dim) count *= layout.pieces(dim).count();
  return count;
}

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

MemberLists lists_of(const Request& request, const Layout& layout, const std::vector<Rank>& job,
                     bool holds) {
  struct ListedMember {
    std::int64_t list;
    Member member;
    auto operator<=>(const ListedMember&) const = default;
  };
  const FoldMeaning& fold = request.fold();
  MemberLists out;
  out.kept = fold.addend_count / fold.fold_count;
  if (!holds)
    for (int axis : fold.zero_axes) out.zeros *= layout.mesh().axis_size(axis);
  std::vector<ListedMember> entries;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position) {
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    // Kept axes exist only if both meshes have the same shape, so a destination coordinate has an
    // addend place too.
    AddendPlace place = holds || out.kept > 1 ? addend_place(fold, coordinate) : AddendPlace{};
    std::int64_t list = (cell_of(layout, coordinate) * out.kept + place.kept) * out.zeros +
                        (holds ? 0 : request.zero_coordinate(position));
    entries.push_back(
        {list, {index_in(job, layout.mesh().rank_at(position)), holds ? place.folded : 0}});
  }
  std::sort(entries.begin(), entries.end());
  out.begins.assign(to_index(cell_count(layout) * out.kept * out.zeros) + 1, 0);
  for (const ListedMember& entry : entries) {
    ++out.begins[to_index(entry.list) + 1];
    out.members.push_back(entry.member);
  }
  for (std::size_t list = 1; list < out.begins.size(); ++list)
    out.begins[list] += out.begins[list - 1];
  return out;
}

std::vector<SharedPieces> shared_pieces(const PieceTable& source, const PieceTable& destination) {
  std::vector<SharedPieces> found;
  for_each_meeting(sorted_runs(source), sorted_runs(destination),
                   [&](const PieceRun& from, const PieceRun& to, std::int64_t lo, std::int64_t hi) {
                     found.push_back({from.second, to.second, hi - lo});
                   });
  auto key = [](const SharedPieces& o) { return std::pair(o.source, o.destination); };
  std::sort(found.begin(), found.end(),
            [&](const SharedPieces& x, const SharedPieces& y) { return key(x) < key(y); });
  std::vector<SharedPieces> out;
  for (const SharedPieces& overlap : found) {
    if (!out.empty() && key(out.back()) == key(overlap))
      out.back().size += overlap.size;
    else
      out.push_back(overlap);
  }
  return out;
}

}  // namespace

MemberLists holders_of(const Request& request, const std::vector<Rank>& job) {
  return lists_of(request, request.source(), job, true);
}

MemberLists needers_of(const Request& request, const std::vector<Rank>& job) {
  return lists_of(request, request.destination(), job, false);
}

std::vector<std::int64_t> zero_coordinates(const Request& request) {
  const Layout& source = request.source();
  std::vector<std::int64_t> out(to_index(cell_count(source)), 0);
  for (std::int32_t position = 0; position < source.mesh().size(); ++position)
    out[to_index(cell_of(source, source.mesh().coordinate(position)))] =
        request.zero_coordinate(position);
  return out;
}

Atoms::Atoms(const Request& request) {
  for (int dim = 0; dim < request.source().dims(); ++dim) {
    const PieceTable& source = request.source().pieces(dim);
    const PieceTable& destination = request.destination().pieces(dim);
    dims_.push_back({shared_pieces(source, destination), source.count(), destination.count()});
  }
}

std::int64_t Atoms::count() const {
  std::int64_t count = 1;
  for (const Dim& dim : dims_) count *= static_cast<std::int64_t>(dim.overlaps.size());
  return count;
}

}  // namespace reshard
