// SPDX-License-Identifier: BSD-3-Clause
// Wording of findings: how messages name lines, ranks and communicators of a trace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/sort_once.h"
#include "sim/trace/trace.h"

namespace reshard::sim {

// A finding with the lines of `at` and these ranks; its text is "FILE:LINE: " of `place`, then the
// sentence.
TraceFinding finding_of(const Trace& trace, const std::vector<OpId>& at, std::vector<Rank> ranks,
                        OpId place, const std::string& sentence);

// "communicator 'tp'"; "communicator [0-7]" if it has no name.
std::string communicator_text(const Trace& trace, std::int32_t communicator);
// "line 3", "lines 3, 5, .. (20 in total)".
std::string lines_text(const Trace& trace, const std::vector<OpId>& at);
// "rank 3", "ranks 0-2".
std::string ranks_words(const std::vector<Rank>& ranks);

}  // namespace reshard::sim
