// SPDX-License-Identifier: BSD-3-Clause
#include "sim/report/lanes.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "core/base/errors.h"

namespace reshard::sim {

std::vector<std::int32_t> pack_lanes(const std::vector<Slice>& slices) {
  // Busy lanes by the end of their last slice, and the free ones by number.
  using Busy = std::pair<std::int64_t, std::int32_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free_lanes;
  std::int32_t lanes = 0;
  std::vector<std::int32_t> out;
  out.reserve(slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    RESHARD_CHECK(i == 0 || slices[i - 1].start <= slices[i].start, "slices out of order");
    while (!busy.empty() && busy.top().first <= slices[i].start) {
      free_lanes.push(busy.top().second);
      busy.pop();
    }
    std::int32_t lane = lanes;
    if (free_lanes.empty()) {
      ++lanes;
    } else {
      lane = free_lanes.top();
      free_lanes.pop();
    }
    busy.push({slices[i].end, lane});
    out.push_back(lane);
  }
  return out;
}

std::vector<Stretch> stretches(const std::vector<Slice>& slices) {
  std::vector<Stretch> out;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    if (out.empty() || slice.start >= out.back().end) {
      out.push_back({slice.start, slice.end, static_cast<std::int64_t>(i), 1});
    } else {
      out.back().end = std::max(out.back().end, slice.end);
      ++out.back().count;
    }
  }
  return out;
}

}  // namespace reshard::sim
