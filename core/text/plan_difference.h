// SPDX-License-Identifier: BSD-3-Clause
// Where two plans differ first, in words: what a job says whose ranks do not have one plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reshard {

struct PlanDifference {
  std::string what;         // "dtype", "destination placements", "step 2"
  std::string here, there;  // what the two have; "none" where one has less
};

// Of texts by to_text(), which may be cut off behind a line. What the requests say comes first, the
// planner's name last.
std::optional<PlanDifference> difference_of(std::string_view here, std::string_view there);

}  // namespace reshard
