// SPDX-License-Identifier: BSD-3-Clause
// Faults in the order in which a reader wants them: those of one kind and cause together, the
// largest first, each with the mistake that explains it.
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
  std::vector<CopyFault> faults;    // by rank, buffer and box; the first is the example
  std::vector<Rank> to, from;       // ascending
  std::vector<std::int64_t> lines;  // ascending, each once
  std::string mistake;              // what it looks like; empty if nothing that is known
};

std::vector<Finding> findings_of(std::vector<CopyFault> faults, const Stored& source,
                                 const Stored& destination);

}  // namespace reshard
