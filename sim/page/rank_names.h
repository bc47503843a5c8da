// SPDX-License-Identifier: BSD-3-Clause
// What pictures and tables call the ranks that share a row.
#pragma once

#include <string>
#include <vector>

#include "core/base/ids.h"

namespace reshard::sim {

// "rank 3", "ranks 0-7 (8)", "ranks 0, 8, .. (128)" of a long list. At least one.
std::string ranks_name(const std::vector<Rank>& ranks);

}  // namespace reshard::sim
