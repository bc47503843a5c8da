// SPDX-License-Identifier: BSD-3-Clause
// Buffers that are read, or written, as if their tensors were laid out in another way.
//
// A way that explains one fault can fit by chance. It is named only if it explains most of the
// faults in the buffer.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/judge/fault_groups.h"
#include "core/judge/taken_as.h"

namespace reshard {

class TakenOtherwise {
 public:
  // Examines the source as it is read, or the destination as it is written; `ranks` are those of
  // that side. Looks at the first `most` findings only.
  TakenOtherwise(const std::vector<Finding>& findings, std::size_t most, const Stored& side,
                 const std::vector<Rank>& ranks, bool reads);

  // The mistake that explains all faults of a finding; empty if none does.
  std::string mistake_of(const Finding& finding) const;

 private:
  // The ways as bit numbers: in blocks, alternating, joined, cut along dim 0, 1, ...
  static constexpr int kBlocks = 0, kAlternating = 1, kJoined = 2, kCut = 3, kMostWays = 32;
  using Ways = std::uint32_t;
  struct Buffer {
    TakenAs as;
    std::int64_t faults = 0;
    std::array<std::int64_t, kMostWays> explained = {};
  };

  Buffer* buffer_of(const CopyFault& fault, std::int64_t& offset) const;
  Ways ways_of(const CopyFault& fault, const Buffer& buffer, std::int64_t offset) const;
  Ways ways_of(const CopyFault& fault, const TakenAs& as, const DimVector& wanted,
               const DimVector& got, std::int64_t offset) const;
  std::string text(int way, const CopyFault& fault, const Buffer& buffer) const;

  const Stored& side_;
  const std::vector<Rank>& ranks_;
  bool reads_;
  mutable std::map<StoredBufferId, Buffer> buffers_;
};

}  // namespace reshard
