// SPDX-License-Identifier: BSD-3-Clause
// What every line of a trace takes so that all of them together move for the least time: the
// shortest path over how tensors may lie, line by line, with the few best states kept.
//
// A state is how the values that later lines name lie, copies included. One that another could
// still become in the time that it is ahead, by bringing what it holds to how it lies there, is not
// followed: what is moved early without need is never cheaper than the same move later. On a chain
// with few states the rest has the shortest path itself. Where many values are alive, kStates of
// the states are followed, and after kLag lines the best one's choice holds; so the work grows with
// the length of the trace alone.
#pragma once

#include <string>
#include <vector>

#include "sim/dispatch/choices.h"

namespace reshard::sim {

inline constexpr std::size_t kStates = 12, kLag = 64;

// `declared`: by ValueId, what lines declare. `file` for messages. Throws InputError
// "FILE:LINE: ..." for a line that can be done in no state.
std::vector<Taken> look_ahead(const std::vector<DispatchLine>& lines,
                              const std::vector<std::optional<Held>>& declared,
                              const std::string& file, Choices& choices);

}  // namespace reshard::sim
