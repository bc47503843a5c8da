// SPDX-License-Identifier: BSD-3-Clause
// Packing slices that overlap into as few lanes as possible, and folding flows into stretches: what
// a thread of a Chrome trace can show.
#pragma once

#include <cstdint>
#include <vector>

namespace reshard::sim {

struct Slice {
  std::int64_t start, end;
};

// A lane per slice, so that no two slices of a lane overlap (touching is allowed). Slices must
// ascend by start. Lanes are numbered from 0, the lowest free one first.
std::vector<std::int32_t> pack_lanes(const std::vector<Slice>& slices);

// A maximal stretch of overlapping slices; touching ones are apart.
struct Stretch {
  std::int64_t start, end;
  std::int64_t first, count;  // consecutive slices it is made of
};
// Slices must ascend by start.
std::vector<Stretch> stretches(const std::vector<Slice>& slices);

}  // namespace reshard::sim
