// SPDX-License-Identifier: BSD-3-Clause
// The windows of pooling along one dim.
#pragma once

#include <vector>

#include "sim/operators/operator_row.h"

namespace reshard::sim {

// Elements start, start + step .. below end; `padded`: with the padding it reaches into.
struct Window {
  std::int64_t start, end, padded, step = 1;
};

// How many windows' worth of elements there are: the product of the dims before the last `dims`,
// of which there must be at least one.
std::int64_t outer_count(const LocalCall& call, const Shape& shape, int dims);

// One size for each of `dims` dims, or one for all; at least 1 and not too many.
std::vector<std::int64_t> spatial_sizes(const LocalCall& call, const char* name, int dims);

std::vector<Window> adaptive_windows(std::int64_t length, std::int64_t count);

// Of a call with kernel_size, stride, padding, dilation and ceil_mode.
class PoolWindows {
 public:
  PoolWindows(const LocalCall& call, int dims);
  std::vector<Window> windows(int dim, std::int64_t length) const;

 private:
  const LocalCall& call_;
  std::vector<std::int64_t> kernel_, stride_, padding_, dilation_;
};

}  // namespace reshard::sim
