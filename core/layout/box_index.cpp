// SPDX-License-Identifier: BSD-3-Clause
#include "core/layout/box_index.h"

#include <algorithm>
#include <numeric>

namespace reshard {

void subtract(const Box& other, std::vector<Box>& boxes) {
  std::vector<Box> out;
  for (Box& box : boxes) {
    if (intersect(box, other).empty()) {
      out.push_back(box);
      continue;
    }
    for (int d = 0; d < box.dims(); ++d) {
      if (box.lo[d] < other.lo[d]) {
        out.push_back(box);
        out.back().hi[d] = other.lo[d];
      }
      if (other.hi[d] < box.hi[d]) {
        out.push_back(box);
        out.back().lo[d] = other.hi[d];
      }
      box.lo[d] = std::max(box.lo[d], other.lo[d]);
      box.hi[d] = std::min(box.hi[d], other.hi[d]);
    }
  }
  boxes = std::move(out);
}

BoxIndex::BoxIndex(std::vector<Box> boxes) : boxes_(std::move(boxes)), order_(boxes_.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  int dims = boxes_.empty() ? 0 : boxes_.front().dims();
  std::size_t most = 0;
  for (int d = 0; d < dims; ++d) {
    std::vector<std::int64_t> starts;
    for (const Box& box : boxes_) starts.push_back(box.lo[d]);
    std::sort(starts.begin(), starts.end());
    auto distinct =
        static_cast<std::size_t>(std::unique(starts.begin(), starts.end()) - starts.begin());
    if (distinct > most) most = distinct, dim_ = d;
  }
  if (dims == 0) return;
  auto key = [&](std::size_t i) { return std::pair(boxes_[i].lo[dim_], i); };
  std::sort(order_.begin(), order_.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  for (std::size_t i : order_)
    reach_.push_back(reach_.empty() ? boxes_[i].hi[dim_]
                                    : std::max(reach_.back(), boxes_[i].hi[dim_]));
}

std::size_t BoxIndex::first(const Box& box) const {
  if (reach_.empty()) return 0;
  auto at = std::upper_bound(reach_.begin(), reach_.end(), box.lo[dim_]);
  return static_cast<std::size_t>(at - reach_.begin());
}

std::optional<std::pair<std::size_t, std::size_t>> BoxIndex::overlap() const {
  std::optional<std::pair<std::size_t, std::size_t>> out;
  for (std::size_t i = 0; i < boxes_.size() && !out; ++i)
    for_each_meeting(boxes_[i], [&](std::size_t other) {
      if (other > i && (!out || other < out->second)) out = {i, other};
    });
  return out;
}

}  // namespace reshard
