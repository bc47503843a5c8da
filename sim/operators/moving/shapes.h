// SPDX-License-Identifier: BSD-3-Clause
// Checked shapes from attributes.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "core/base/limits.h"
#include "sim/operators/operator_row.h"

namespace reshard::sim {

inline Shape shape_of(const LocalCall& call, const std::vector<std::int64_t>& sizes) {
  if (sizes.size() > kMaxDims)
    call.refuse(fmt::format("expected at most {} dims, found {}", kMaxDims, sizes.size()));
  Shape out;
  for (std::int64_t size : sizes) out.push_back(size);
  return out;
}

// The shape with one more dim at position `at`.
inline Shape with_dim(const LocalCall& call, const Shape& shape, int at, std::int64_t extent) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  sizes.insert(sizes.begin() + at, extent);
  return shape_of(call, sizes);
}

// A shape of `count` elements from sizes of which one can be -1, which is then inferred.
inline Shape inferred_shape(const LocalCall& call, const std::vector<std::int64_t>& sizes,
                            std::int64_t count) {
  Shape out = shape_of(call, sizes);
  int open = -1;
  std::int64_t others = 1;
  for (int d = 0; d < out.size(); ++d) {
    call.expect(out[d] >= 0 || (out[d] == -1 && open < 0), "expected sizes, one of them -1");
    if (out[d] == -1)
      open = d;
    else if (out[d] > 0 && others > kMaxBytes / out[d])
      call.expect(false, "expected a size of as many elements as there are");
    else
      others *= out[d];
  }
  if (open >= 0) {
    call.expect(others > 0 && count % others == 0,
                "expected a size of as many elements as there are");
    out[open] = count / others;
  }
  if (element_count(out) != count)
    call.refuse(fmt::format("expected a size of {} elements, found [{}]", count, text(out)));
  return out;
}

}  // namespace reshard::sim
