// SPDX-License-Identifier: BSD-3-Clause
// Faults in the order in which a reader wants them: blocks that follow one another joined, those of
// one kind and cause together, the largest first, each with the mistake that explains it.
#pragma once

#include <vector>

#include "sim/digest/compare.h"

namespace reshard::sim {

// Ranks that are not in `wrote` at all are one finding.
std::vector<DigestFinding> findings_of(std::vector<DigestFault> faults, const ModelLayouts& layouts,
                                       const Digests& wrote);

}  // namespace reshard::sim
