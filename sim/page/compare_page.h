// SPDX-License-Identifier: BSD-3-Clause
// Two reports side by side, as a page: their figures as pairs of bars, and what differs in each of
// their lists.
#pragma once

#include <string>

#include "sim/report/comparison.h"

namespace reshard::sim {

std::string compare_page(const Comparison& comparison);

}  // namespace reshard::sim
