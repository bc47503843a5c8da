// SPDX-License-Identifier: BSD-3-Clause
// What tables and pages say alike of a replayed trace. Texts are empty where there is nothing to
// say.
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace reshard::sim {

std::string proof_text(const ReplayReport& report);
std::string data_text(const ReplayReport& report);
// "3.2 ms more than without them, 25.6 ms; most of it at line 7 (3 ms longer)".
std::string faults_text(const ReplayReport& report);
// "rank 3, 10 ms behind all others at line 7; together they waited 70 ms (and 2 more)".
std::string late_text(const ReplayReport& report);
// Launches whose turn came late: those that would gain by a swap, most first.
std::vector<Delayed> delayed_by_gain(const ReplayReport& report);

}  // namespace reshard::sim
