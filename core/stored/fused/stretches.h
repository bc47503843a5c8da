// SPDX-License-Identifier: BSD-3-Clause
// The rows of a fused block as few stretches of tensors, worked out once for all ranks that have
// the same rows: interleaved rows are thousands of segments.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/stored/stored.h"

namespace reshard {

// Rows of a block that are consecutive in a tensor; rows without a tensor are left out.
struct RowSegment {
  std::int64_t at;  // in the block
  ModelTensorId tensor;
  std::int64_t lo, rows;  // of the tensor
};

struct BlockRows {
  std::int64_t count = 0;
  std::vector<RowSegment> segments;  // ascending
};

// Rows [lo, hi) of a tensor that lie at equal distances: row lo at `offset`.
struct RowStretch {
  ModelTensorId tensor;
  std::int64_t lo, hi, offset, stride;
};
// Extends `before` by rows of the same tensor, if the whole is one stretch; otherwise false.
bool join(RowStretch& before, const RowStretch& next);

class RowStretches {
 public:
  // Rows [lo, hi) of a block, which lie `stride` apart from offset 0 on. `number` is the block's.
  const std::vector<RowStretch>& of(std::size_t number, const BlockRows& block, std::int64_t lo,
                                    std::int64_t hi, std::int64_t stride);

 private:
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>,
           std::vector<RowStretch>>
      known_;
};

}  // namespace reshard
