// SPDX-License-Identifier: BSD-3-Clause
#include "core/pattern/pattern_rows.h"

#include <algorithm>
#include <array>
#include <vector>

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

}  // namespace

void for_each_row(const Layout& layout, std::int32_t position, const ZeroAxes* zero_axes,
                  const VisitRow& row) {
  ShardRows(layout, position, zero_axes, row).walk();
}

}  // namespace reshard
