// SPDX-License-Identifier: BSD-3-Clause
// Groups faults as a reader wants to see them: consecutive blocks joined, then those of one kind
// and cause together, the largest group first, each with the mistake that explains it.
#pragma once

#include <vector>

#include "sim/digest/compare.h"

namespace reshard::sim {

// The ranks that are missing from `wrote` make one finding.
std::vector<DigestFinding> findings_of(std::vector<DigestFault> faults, const ModelLayouts& layouts,
                                       const Digests& wrote);

}  // namespace reshard::sim
