// SPDX-License-Identifier: BSD-3-Clause
// Pooling windows along one dim.
#pragma once

#include <vector>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// Elements start, start + step, .. below end. `padded`: length including padding.
struct Window {
  std::int64_t start, end, padded, step = 1;
};

// The greatest size, stride, padding or dilation.
inline constexpr std::int64_t kMostPlaces = 1 << 20;

// The product of the extents before the last `dims` dims. There must be at least one such dim.
std::int64_t outer_count(const LocalCall& call, const Shape& shape, int dims);

// Sizes from an attribute with one number per dim or one for all; each 1 .. 2^20.
std::vector<std::int64_t> spatial_sizes(const LocalCall& call, const char* name, int dims);

std::vector<Window> adaptive_windows(std::int64_t length, std::int64_t count);

// The windows of a call with kernel_size, stride, padding, dilation and ceil_mode.
class PoolWindows {
 public:
  PoolWindows(const LocalCall& call, int dims);
  std::vector<Window> windows(int dim, std::int64_t length) const;

 private:
  const LocalCall& call_;
  std::vector<std::int64_t> kernel_, stride_, padding_, dilation_;
};

}  // namespace reshard::sim
