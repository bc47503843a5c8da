// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/box.h"

#include <fmt/format.h>

namespace reshard {

std::string text(const DimVector& values) {
  std::string out;
  for (int d = 0; d < values.size(); ++d) out += fmt::format("{}{}", d == 0 ? "" : ",", values[d]);
  return out;
}

DimVector index_at(std::int64_t index, const Shape& shape) {
  DimVector at(shape.size());
  for (int d = shape.size() - 1; d >= 0; --d) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

std::string text(const Box& box) {
  std::string out = "[";
  for (int d = 0; d < box.dims(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ",", box.lo[d], box.hi[d]);
  return out + "]";
}

}  // namespace reshard
