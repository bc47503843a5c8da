// SPDX-License-Identifier: BSD-3-Clause
// Groups faults as a reader wants to see them: those of one kind and cause together, the largest
// group first, each with the mistake that explains it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/judge/judge.h"

namespace reshard {

struct Finding {
  CopyFaultKind kind;
  ModelTensorId tensor{-1}, got{-1};  // as in CopyFault
  std::int64_t elements = 0;
  std::vector<CopyFault> faults;  // by rank, buffer and box; the first is the example that is shown
  std::vector<Rank> to, from;     // ascending
  std::vector<std::int64_t> lines;  // ascending, without repetition
  std::string mistake;              // the known mistake that explains it; empty if none does
};

std::vector<Finding> findings_of(std::vector<CopyFault> faults, const Stored& source,
                                 const Stored& destination);

}  // namespace reshard
