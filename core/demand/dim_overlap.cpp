// SPDX-License-Identifier: BSD-3-Clause
// The pieces of a source dim partition it, so their sorted runs tile it, and each run of a
// destination piece overlaps a contiguous range of that list.
#include "core/demand/dim_overlap.h"

#include <algorithm>

namespace reshard {

namespace {

PieceTable single_element() {
  PieceTable table;
  table.add_run(0, 1);
  table.end_piece();
  return table;
}

std::vector<std::int32_t> offsets_over(const Mesh& mesh, const std::vector<int>& axes) {
  std::vector<std::int32_t> out{0};
  for (int axis : axes) {
    std::vector<std::int32_t> next;
    next.reserve(out.size() * to_index(mesh.axis_size(axis)));
    for (std::int32_t offset : out)
      for (std::int32_t c = 0; c < mesh.axis_size(axis); ++c)
        next.push_back(offset + c * mesh.stride(axis));
    out = std::move(next);
  }
  return out;
}

}  // namespace

DimOverlap::DimOverlap(const Request& request, const ZeroAxes& zero_axes, int dim)
    : shares_(zero_axes.share_count(dim)) {
  if (request.source().dims() == 0) {
    PieceTable one = single_element();
    add_piece(one.runs(0), sorted_runs(one), zero_axes, dim);
    return;
  }
  std::vector<PieceRun> source_runs = sorted_runs(request.source().pieces(dim));
  const PieceTable& pieces = request.destination().pieces(dim);
  begins_.reserve(to_index(pieces.count() * shares_) + 1);
  for (std::int64_t piece = 0; piece < pieces.count(); ++piece)
    add_piece(pieces.runs(piece), source_runs, zero_axes, dim);
}

void DimOverlap::add_piece(Runs destination, const std::vector<PieceRun>& source_runs,
                           const ZeroAxes& zero_axes, int dim) {
  struct Met {
    std::int64_t source_piece, share;
    Fragment fragment;
    auto key() const { return std::pair(share, source_piece); }
  };
  std::vector<Met> met;
  for (const Run& run : destination) {
    auto it = std::partition_point(source_runs.begin(), source_runs.end(), [&](const auto& entry) {
      return entry.first.global_hi() <= run.global_lo;
    });
    for (; it != source_runs.end() && it->first.global_lo < run.global_hi(); ++it) {
      std::int64_t lo = std::max(run.global_lo, it->first.global_lo),
                   hi = std::min(run.global_hi(), it->first.global_hi());
      met.push_back({it->second,
                     zero_axes.share_of_piece(dim, it->second),
                     {it->first.local_lo + lo - it->first.global_lo,
                      run.local_lo + lo - run.global_lo, 0, hi - lo}});
    }
  }
  std::stable_sort(met.begin(), met.end(),
                   [](const Met& a, const Met& b) { return a.key() < b.key(); });
  std::size_t first = begins_.size();
  for (const Met& entry : met) {
    begins_.resize(first + to_index(entry.share), overlaps_.size());
    if (overlaps_.size() == begins_.back() || overlaps_.back().source_piece != entry.source_piece)
      overlaps_.push_back(
          {entry.source_piece, 0, static_cast<std::uint32_t>(fragments_.size()), 0});
    PieceOverlap& overlap = overlaps_.back();
    fragments_.push_back(entry.fragment);
    fragments_.back().packed_lo = overlap.size;
    overlap.size += entry.fragment.size;
    ++overlap.fragment_count;
  }
  begins_.resize(first + to_index(shares_), overlaps_.size());
}

std::vector<DimOverlap> overlaps_of(const Request& request, const ZeroAxes& zero_axes) {
  std::vector<DimOverlap> out;
  for (int dim = 0; dim < std::max(1, request.shape().size()); ++dim)
    out.emplace_back(request, zero_axes, dim);
  return out;
}

CellPositions::CellPositions(const Layout& layout) {
  const Mesh& mesh = layout.mesh();
  for (int dim = 0; dim < layout.dims(); ++dim)
    bases_.push_back(offsets_over(mesh, layout.stack(dim)));
  if (layout.dims() == 0) bases_.push_back({0});
  std::vector<int> replicas, partials;
  for (int axis = 0; axis < mesh.axes(); ++axis) {
    if (layout.placement(axis).is_replicate()) replicas.push_back(axis);
    if (layout.placement(axis).is_partial()) partials.push_back(axis);
  }
  replica_offsets_ = offsets_over(mesh, replicas);
  addend_offsets_ = offsets_over(mesh, partials);
}

}  // namespace reshard
