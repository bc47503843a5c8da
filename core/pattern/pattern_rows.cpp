// SPDX-License-Identifier: BSD-3-Clause
#include "core/pattern/pattern_rows.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/layout/box_index.h"

namespace reshard {
namespace {

class ShardRows {
 public:
  ShardRows(const Layout& layout, std::int32_t position, const ZeroAxes* zero_axes,
            const VisitRow& row)
      : row_(row), dims_(layout.dims()) {
    std::int64_t stride = 1;
    MeshCoordinate coordinate = layout.mesh().coordinate(position);
    for (int d = dims_ - 1; d >= 0; --d) {
      auto at = to_index(d);
      Runs own = layout.runs(d, position);
      parts_[at] =
          cut(own, zero_axes ? zero_axes->runs(d, zero_axes->share_of(d, coordinate)) : own);
      strides_[at] = stride;
      stride *= layout.shape()[d];
    }
    last_ = dims_ - 1;
    while (last_ > 0 && holds_whole(last_, layout.shape()[last_])) --last_;
  }

  void walk() {
    if (dims_ == 0) {
      row_(std::int64_t{0}, std::int64_t{1}, true);
      return;
    }
    for (int d = 0; d < dims_; ++d)
      if (parts_[to_index(d)].empty()) return;
    walk(0, 0, true);
  }

 private:
  struct ShareRun {
    std::int64_t lo, size;
    bool has_values;
  };

  // Splits `own` into what is in the share and what is not.
  static std::vector<ShareRun> cut(Runs own, Runs share) {
    std::vector<ShareRun> out;
    auto at = share.begin();
    for (const Run& run : own)
      for (std::int64_t lo = run.global_lo; lo < run.global_hi();) {
        while (at != share.end() && at->global_hi() <= lo) ++at;
        bool inside = at != share.end() && at->global_lo <= lo;
        std::int64_t hi = run.global_hi();
        if (at != share.end()) hi = std::min(hi, inside ? at->global_hi() : at->global_lo);
        out.push_back({lo, hi - lo, inside});
        lo = hi;
      }
    return out;
  }

  bool holds_whole(int dim, std::int64_t length) const {
    const std::vector<ShareRun>& parts = parts_[to_index(dim)];
    return parts.size() == 1 && parts[0].size == length && parts[0].has_values;
  }

  void walk(int dim, std::int64_t base, bool has_values) {
    auto at = to_index(dim);
    for (const ShareRun& part : parts_[at]) {
      bool valued = has_values && part.has_values;
      if (dim == last_) {
        row_(base + part.lo * strides_[at], part.size * strides_[at], valued);
        continue;
      }
      for (std::int64_t i = 0; i < part.size; ++i)
        walk(dim + 1, base + (part.lo + i) * strides_[at], valued);
    }
  }

  const VisitRow& row_;
  int dims_, last_;
  std::array<std::vector<ShareRun>, kMaxDims> parts_;
  std::array<std::int64_t, kMaxDims> strides_{};
};

// The rows of a shard that consists of boxes and padding.
class BoxRows {
 public:
  BoxRows(const Layout& layout, std::int32_t position, const VisitRow& row)
      : row_(row), shape_(layout.local_shape(position)) {
    std::int64_t stride = 1;
    for (int d = layout.dims() - 1; d >= 0; --d) {
      strides_[to_index(d)] = stride;
      stride *= layout.shape()[d];
    }
    layout.for_each_part(position, [&](const Box& box, const DimVector& local_lo) {
      parts_.push_back({box, local_lo});
    });
    std::vector<const Part*> all;
    for (const Part& part : parts_) all.push_back(&part);
    if (!all.empty()) walk(0, DimVector(layout.dims(), 0), all);
  }

 private:
  // The parts that contain the local index `at` in the dims before `dim`.
  void walk(int dim, DimVector at, const std::vector<const Part*>& parts) {
    for_each_slab(
        parts, dim, 0, shape_[dim], [](const Part* part) { return part->local(); },
        [&](std::int64_t lo, std::int64_t hi, const std::vector<const Part*>& inside) {
          if (inside.empty()) {
            row_(kNoIndex, (hi - lo) * inner(dim), false);
          } else if (dim + 1 == at.size()) {
            at[dim] = lo;
            row_(global_index(*inside.front(), at), hi - lo, true);
          } else {
            for (at[dim] = lo; at[dim] < hi; ++at[dim]) walk(dim + 1, at, inside);
          }
        });
  }

  // Elements of the dims after `dim`.
  std::int64_t inner(int dim) const {
    std::int64_t out = 1;
    for (int d = dim + 1; d < shape_.size(); ++d) out *= shape_[d];
    return out;
  }

  std::int64_t global_index(const Part& part, const DimVector& at) const {
    std::int64_t out = 0;
    for (int d = 0; d < at.size(); ++d)
      out += (part.box.lo[d] + at[d] - part.local_lo[d]) * strides_[to_index(d)];
    return out;
  }

  const VisitRow& row_;
  Shape shape_;
  std::array<std::int64_t, kMaxDims> strides_{};
  std::vector<Part> parts_;
};

}  // namespace

void for_each_row(const Layout& layout, std::int32_t position, const ZeroAxes* zero_axes,
                  const VisitRow& row) {
  if (!layout.is_product()) {
    BoxRows(layout, position, row);
    return;
  }
  ShardRows(layout, position, zero_axes, row).walk();
}

}  // namespace reshard
