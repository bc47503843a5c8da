// SPDX-License-Identifier: BSD-3-Clause
// Views of dense arrays, computed in the slow and obvious way, to test the maps of core/ops.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"
#include "core/ops/attributes.h"

namespace reshard::test {

struct IndexArray {
  Shape shape;
  std::vector<std::int64_t> values;  // row-major
  friend bool operator==(const IndexArray&, const IndexArray&) = default;
};

// 0, 1, 2, ...
IndexArray counted(const Shape& shape);
// What the rank at a position of the layout's mesh holds of it.
IndexArray part_of(const IndexArray& whole, const Layout& layout, std::int32_t position);
// view, flatten, ravel, unflatten, squeeze, unsqueeze, permute, transpose, t, movedim, expand,
// repeat. Fails the test where sizes do not fit the array.
IndexArray viewed(std::string_view name, const OpAttributes& attributes, const IndexArray& array);

}  // namespace reshard::test
