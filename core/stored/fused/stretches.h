// SPDX-License-Identifier: BSD-3-Clause
// Divides the rows of a fused block into as few stretches of tensors as possible, once for all
// ranks that have the same rows: interleaved rows are thousands of segments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/stored/stored.h"

namespace reshard {

// Rows of a block that are consecutive in one tensor. Rows without a tensor are left out.
struct RowSegment {
  std::int64_t at;  // in the block
  ModelTensorId tensor;
  std::int64_t lo, rows;  // of the tensor
};

struct BlockRows {
  std::int64_t count = 0;
  std::vector<RowSegment> segments;  // ascending
};

// Rows [lo, hi) of a tensor that lie at equal distances in a buffer, beginning with row lo at
// `offset`.
struct RowStretch {
  ModelTensorId tensor;
  std::int64_t lo, hi, offset, stride;
};

// Extends `before` by `next` if the two make one stretch of the same tensor; otherwise returns
// false.
inline bool join(RowStretch& before, const RowStretch& next) {
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

class RowStretches {
 public:
  // The stretches of rows [lo, hi) of block `number`, if its rows lie `stride` apart from offset 0
  // on.
  const std::vector<RowStretch>& of(std::size_t number, const BlockRows& block, std::int64_t lo,
                                    std::int64_t hi, std::int64_t stride) {
    auto [known, is_new] = known_.try_emplace({number, lo, hi, stride});
    if (is_new) known->second = made(block.segments, lo, hi, stride);
    return known->second;
  }

 private:
  static std::vector<RowStretch> made(const std::vector<RowSegment>& segments, std::int64_t lo,
                                      std::int64_t hi, std::int64_t stride) {
    std::vector<RowStretch> out;
    std::map<ModelTensorId, std::size_t> last;
    auto segment = std::upper_bound(
        segments.begin(), segments.end(), lo,
        [](std::int64_t at, const RowSegment& of) { return at < of.at + of.rows; });
    for (; segment != segments.end() && segment->at < hi; ++segment) {
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

  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>,
           std::vector<RowStretch>>
      known_;
};

}  // namespace reshard
