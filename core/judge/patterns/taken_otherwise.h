// SPDX-License-Identifier: BSD-3-Clause
// Buffers that are read, or written, as if their tensors lay in them in another way.
//
// A way that explains one fault can be right by chance. It is believed if it explains most of what
// is wrong in the buffer.
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
  // Of the source as it is read, or of the destination as it is written, whose ranks these are.
  // Looks at so many findings.
  TakenOtherwise(const std::vector<Finding>& findings, std::size_t most, const Stored& side,
                 const std::vector<Rank>& ranks, bool reads);

  // What explains all of a finding; empty if nothing does.
  std::string mistake_of(const Finding& finding) const;

 private:
  // The ways, each a bit: as blocks, alternating, joined, cut along dim 0, 1, ...
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
