// SPDX-License-Identifier: BSD-3-Clause
// What every line of a trace takes so that all of them together move for the least time: the
// shortest path over how tensors may lie, line by line, with the few best states kept.
//
// A state is how the values that later lines name lie, copies included; two ways to one state are
// one, the shorter. On a chain with few states that is the shortest path itself. Where many values
// are alive, kStates of the states are followed, and after kLag lines the best one's choice holds;
// so the work grows with the length of the trace alone.
#pragma once

#include <string>
#include <vector>

#include "sim/dispatch/choices.h"

namespace reshard::sim {

inline constexpr std::size_t kStates = 8, kLag = 64;

// `declared`: by ValueId, what lines declare. `file` for messages. Throws InputError
// "FILE:LINE: ..." for a line that can be done in no state.
std::vector<Taken> look_ahead(const std::vector<DispatchLine>& lines,
                              const std::vector<std::optional<Held>>& declared,
                              const std::string& file, Choices& choices);

}  // namespace reshard::sim
