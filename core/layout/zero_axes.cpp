// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/zero_axes.h"

#include <algorithm>

#include "core/base/grouped.h"

namespace reshard {
ZeroAxes::ZeroAxes(const Request& request) : none_(request.fold().zero_axes.empty()) {
  for (int dim = 0; dim < request.source().dims(); ++dim)
    dims_.push_back(shares_of(request.source(), dim, request.fold().zero_axes));
  if (dims_.empty()) dims_.push_back(one_share(1));
}

ZeroAxes::Dim ZeroAxes::one_share(std::int64_t length) {
  Dim out;
  out.runs.add_run(0, length);
  out.runs.end_piece();
  return out;
}

ZeroAxes::Dim ZeroAxes::shares_of(const Layout& source, int dim,
                                  const std::vector<int>& zero_axes) {
  if (zero_axes.empty()) return one_share(source.shape()[dim]);
  auto is_zero = [&](int axis) {
    return std::binary_search(zero_axes.begin(), zero_axes.end(), axis);
  };
  const std::vector<int>& stack = source.stack(dim);
  if (std::none_of(stack.begin(), stack.end(), is_zero)) return one_share(source.shape()[dim]);
  Dim out;
  std::size_t shares = 1;
  out.of_piece = {0};
  for (int axis : stack) {
    std::int32_t size = source.mesh().axis_size(axis);
    bool counts = is_zero(axis);
    if (counts) out.axes.push_back({axis, size});
    if (counts) shares *= to_index(size);
    std::vector<std::int64_t> next;
    for (std::int64_t share : out.of_piece)
      for (std::int32_t c = 0; c < size; ++c) next.push_back(counts ? share * size + c : share);
    out.of_piece = std::move(next);
  }
  auto runs = sorted_runs(source.pieces(dim));
  Grouped<Run> by_share(shares, [&](auto put) {
    for (const auto& [run, piece] : runs) put(to_index(out.of_piece[to_index(piece)]), run);
  });
  for (std::size_t share = 0; share < shares; ++share) {
    for (const Run& run : by_share[share]) out.runs.add_run(run.global_lo, run.size);
    out.runs.end_piece();
  }
  return out;
}

std::int64_t ZeroAxes::share_of(int dim, const MeshCoordinate& coordinate) const {
  std::int64_t share = 0;
  for (const Axis& axis : dims_[to_index(dim)].axes)
    share = share * axis.size + coordinate[to_index(axis.axis)];
  return share;
}

std::int64_t ZeroAxes::values_in(const Box& box, const MeshCoordinate& coordinate) const {
  std::int64_t count = 1;
  int dims = static_cast<int>(dims_.size()), leading = box.dims() - dims;
  for (int dim = 0; dim < dims; ++dim) {
    std::int64_t lo = box.lo[leading + dim], hi = box.hi[leading + dim], shared = 0;
    Runs list = runs(dim, share_of(dim, coordinate));
    auto run = std::partition_point(list.begin(), list.end(),
                                    [&](const Run& r) { return r.global_hi() <= lo; });
    for (; run != list.end() && run->global_lo < hi; ++run)
      shared += std::min(hi, run->global_hi()) - std::max(lo, run->global_lo);
    count *= shared;
  }
  return count;
}

}  // namespace reshard
