// SPDX-License-Identifier: BSD-3-Clause
// What the time of a run is waited for has one colour on all of a page: the greatest causes one
// each, all others together one. Compute has that of its slices.
#pragma once

#include <string>
#include <vector>

#include "sim/study/run_facts.h"

namespace reshard::sim {

struct CauseShare {
  std::string name, colour;  // a class of the style
  std::int64_t time_ps;
};
// Most time first; the others, where there are any, last.
std::vector<CauseShare> shares_of(const PathFacts& path);

// Of a cause that may be among the others.
std::string colour_of(const std::vector<CauseShare>& shares, const std::string& cause);

}  // namespace reshard::sim
