// SPDX-License-Identifier: BSD-3-Clause
// Common mistakes, recognised by the faults that they cause.
#pragma once

#include <vector>

#include "core/judge/fault_groups.h"

namespace reshard {

// Sets Finding::mistake to a mistake that explains all faults of the finding, if one does. Looks
// only at the first 1,000 findings.
void name_mistakes(std::vector<Finding>& findings, const Stored& source, const Stored& destination);

}  // namespace reshard
