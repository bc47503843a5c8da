// SPDX-License-Identifier: BSD-3-Clause
#include "core/stored/fused/stretches.h"

#include <algorithm>

namespace reshard {

bool join(RowStretch& before, const RowStretch& next) {
  const std::int64_t rows = before.hi - before.lo, distance = next.offset - before.offset;
  if (next.lo != before.hi || distance <= 0 || distance % rows != 0) return false;
  const std::int64_t stride = distance / rows;
  bool fits =
      (rows == 1 || stride == before.stride) && (next.hi - next.lo == 1 || stride == next.stride);
  if (!fits) return false;
  before.stride = stride;
  before.hi = next.hi;
  return true;
}

const std::vector<RowStretch>& RowStretches::of(std::size_t number, const BlockRows& block,
                                                std::int64_t lo, std::int64_t hi,
                                                std::int64_t stride) {
  auto [known, is_new] = known_.try_emplace({number, lo, hi, stride});
  std::vector<RowStretch>& out = known->second;
  if (!is_new) return out;
  std::map<ModelTensorId, std::size_t> last;
  auto segment =
      std::upper_bound(block.segments.begin(), block.segments.end(), lo,
                       [](std::int64_t at, const RowSegment& of) { return at < of.at + of.rows; });
  for (; segment != block.segments.end() && segment->at < hi; ++segment) {
    const std::int64_t begin = std::max(segment->at, lo),
                       end = std::min(segment->at + segment->rows, hi),
                       by = segment->lo - segment->at;
    RowStretch next{segment->tensor, begin + by, end + by, stride * (begin - lo), stride};
    auto [at, is_first] = last.try_emplace(next.tensor, out.size());
    if (!is_first && join(out[at->second], next)) continue;
    at->second = out.size();
    out.push_back(next);
  }
  return out;
}

}  // namespace reshard
