// SPDX-License-Identifier: BSD-3-Clause
// Layouts as planners of collectives read them: which indices of every dim the rank at a position
// holds.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

// A layout with the piece of every rank and dim looked up once.
//
// Dims are those of the plan: a 0-d tensor has one dim of length 1 that nothing cuts.
class Located {
 public:
  // The layout must outlive this.
  explicit Located(const Layout& layout);

  const Layout& layout() const { return *layout_; }
  int dims() const { return dims_; }
  Runs runs(int d, std::int32_t position) const {
    if (layout_->dims() == 0) return kScalarRuns;
    return layout_->pieces(d).runs(pieces_[to_index(position) * to_index(dims_) + to_index(d)]);
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

// Whether the same axes cut `dim` in the same way in both layouts, so that every rank holds the
// same indices of it.
bool same_cut(const Layout& a, const Layout& b, int dim);

// Calls f(a_local_lo, b_local_lo, size) for the indices that a and b share, ascending.
template <class F>
void each_shared(Runs a, Runs b, F&& f) {
  for_each_meeting(a, b, [&](const Run& x, const Run& y, std::int64_t lo, std::int64_t hi) {
    f(x.local_lo + (lo - x.global_lo), y.local_lo + (lo - y.global_lo), hi - lo);
  });
}

inline std::int64_t shared_size(Runs a, Runs b) {
  std::int64_t size = 0;
  each_shared(a, b, [&](std::int64_t, std::int64_t, std::int64_t n) { size += n; });
  return size;
}

}  // namespace reshard
