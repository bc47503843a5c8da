// SPDX-License-Identifier: BSD-3-Clause
// Redistributions of a trace that can be moved together, as one job on one line.
//
// Redistributions on one stream are issued in the order of the trace, but that does not mean that
// one needs another: a line names the lines that it needs in `after`. Lines are a *set* if
//
//   - they name the same lines in `after`, and the same lines name them,
//   - they are on one stream, equal in `async` and `transport`, and no other operation of that
//     stream comes between them on any of their ranks,
//   - the operations directly before them on that stream, and those directly after, are the same
//     for all of them (on ranks where there are none, there is nothing to wait for),
//   - they use one communicator on the same ranks, and nothing uses it between them; or
//     communicators that no other stream and nothing asynchronous uses,
//   - no tensor's name occurs twice: two moves of one tensor are in turn.
//
// Sets on different streams are one set if they name the same lines in `after`, the same lines
// name them, nothing but these and the other sets comes directly before or after them on their
// streams, and nothing else uses their communicators. (If operations of all streams count as
// between, that holds of none.) The joined line then has a stream of its own.
//
// So everything that one of them waited for, all of them waited for, and whatever came after one
// came after all: the joined line adds no wait between them and anything else, and drops only the
// order among them. Lines on tensors with names (`call` and others) and faults end every set.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace reshard::sim {

// Operations of a set, ascending, at least two.
using JoinedSet = std::vector<OpId>;

// All sets, by their first operation. The trace must have no findings. If `implicit_launch_order`,
// operations of all streams count as between.
std::vector<JoinedSet> joinable_sets(const Trace& trace, bool implicit_launch_order);

// The trace with one operation in place of each set, at the position of its first operation, which
// comes after everything that they came after. Its requests are theirs, with the names of their
// lines, and its line has the name "lines 2-4,9". Throws InputError if the joined operation has too
// many stages.
Trace joined(const Trace& trace, const std::vector<JoinedSet>& sets);

// The numbers of its lines: "2-4,9".
std::string line_ranges(const Trace& trace, const JoinedSet& set);

}  // namespace reshard::sim
