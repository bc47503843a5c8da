// SPDX-License-Identifier: BSD-3-Clause
// A layout with the piece of every rank and dim looked up once, and the two walks over runs that
// planners repeat for every pair of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/layout/layout.h"
#include "core/plan/plan.h"

namespace reshard {

// Dims are those of the plan: a 0-d tensor has one dim of length 1 that nothing cuts.
class Located {
 public:
  // The layout must outlive this.
  explicit Located(const Layout& layout);

  const Layout& layout() const { return *layout_; }
  int dims() const { return dims_; }
  Runs runs(int d, std::int32_t position) const {
    if (layout_->dims() == 0) return kScalarRuns;
    return layout_->pieces(d).runs(
        pieces_[static_cast<std::size_t>(position) * static_cast<std::size_t>(dims_) +
                static_cast<std::size_t>(d)]);
  }
  std::int64_t extent(int d, std::int32_t position) const { return size_of(runs(d, position)); }
  Shape shape(std::int32_t position) const {
    Shape out;
    for (int d = 0; d < dims_; ++d) out.push_back(extent(d, position));
    return out;
  }

 private:
  static constexpr std::array<Run, 1> kScalarRuns{{{0, 0, 1}}};
  const Layout* layout_;
  int dims_;
  std::vector<std::int64_t> pieces_;  // [position][dim]
};

// Whether the same axes cut `dim` in the same way in both, so that every rank holds the same
// indices of it.
bool same_cut(const Layout& a, const Layout& b, int dim);

// Calls f(a_local_lo, b_local_lo, size) for the indices that a and b share, ascending.
template <class F>
void each_shared(Runs a, Runs b, F&& f) {
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    std::int64_t lo = std::max(a[i].global_lo, b[j].global_lo),
                 hi = std::min(a[i].global_hi(), b[j].global_hi());
    if (lo < hi)
      f(a[i].local_lo + (lo - a[i].global_lo), b[j].local_lo + (lo - b[j].global_lo), hi - lo);
    if (a[i].global_hi() < b[j].global_hi())
      ++i;
    else
      ++j;
  }
}

inline std::int64_t shared_size(Runs a, Runs b) {
  std::int64_t size = 0;
  each_shared(a, b, [&](std::int64_t, std::int64_t, std::int64_t n) { size += n; });
  return size;
}

}  // namespace reshard
