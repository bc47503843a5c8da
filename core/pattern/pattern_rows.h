// SPDX-License-Identifier: BSD-3-Clause
// A shard's elements as rows of consecutive global indices, in local row-major order. Inner dims
// that the rank holds whole belong to the row, so that most shards are a few long rows. If zero
// axes leave a rank zeros, its runs are split into those with values and those without.
#pragma once

#include <cstdint>
#include <functional>

#include "core/layout/zero_axes.h"

namespace reshard {

// A row: its first global index (kNoIndex in padding), its length, and whether its elements have
// values.
inline constexpr std::int64_t kNoIndex = -1;
using VisitRow = std::function<void(std::int64_t first, std::int64_t count, bool has_values)>;

// Visits consecutive pieces of the shard; all have values if `zero_axes` is null.
void for_each_row(const Layout& layout, std::int32_t position, const ZeroAxes* zero_axes,
                  const VisitRow& row);

}  // namespace reshard
