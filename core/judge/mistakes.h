// SPDX-License-Identifier: BSD-3-Clause
// Common mistakes, recognised by the faults that they cause.
#pragma once

#include <vector>

#include "core/judge/fault_groups.h"

namespace reshard {

// Sets Finding::mistake where one of them explains all faults of a finding, of the first 1,000.
void name_mistakes(std::vector<Finding>& findings, const Stored& source, const Stored& destination);

}  // namespace reshard
