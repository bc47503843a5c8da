// SPDX-License-Identifier: BSD-3-Clause
// What pictures of a timeline call a rank's part of an operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/traffic/workload.h"

namespace reshard::sim {

// Of a step of a plan its kind; of an operation without steps "compute", "message", "setup", or its
// collective's kind. `step`: -1 where there is none.
std::string_view part_kind(const Workload& workload, OpId op, std::int32_t step);

// "wq.weight: all_gather", "all_gather" without a label, "operation 7" without label and step.
// `labels` by operation; may be shorter.
std::string part_name(const Workload& workload, const std::vector<std::string>& labels, OpId op,
                      std::int32_t step);

}  // namespace reshard::sim
