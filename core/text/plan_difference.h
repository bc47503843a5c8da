// SPDX-License-Identifier: BSD-3-Clause
// The first difference between two plans, in words: what a job reports when its ranks have
// different plans.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reshard {

struct PlanDifference {
  std::string what;         // "dtype", "destination placements", "step 2"
  std::string here, there;  // the two values; "none" where one text is shorter
};

// Compares texts from to_text(), which may be truncated after a line. Differences in the requests
// come first, a different planner name last.
std::optional<PlanDifference> difference_of(std::string_view here, std::string_view there);

}  // namespace reshard
