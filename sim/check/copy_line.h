// SPDX-License-Identifier: BSD-3-Clause
// A line of a file of copies: what is read from one rank and written to another.
#pragma once

#include <utility>

#include "core/judge/judge.h"
#include "core/stored/stored.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// {"from": {"rank": 0, "tensor": "q_proj", "box": "0:4,:"}, "to": {"rank": 2, "buffer": "qkv",
// "offset": 0}}. Throws InputError.
std::pair<CopyEnd, CopyEnd> read_copy(TraceFields& fields, const Stored& source,
                                      const Stored& destination, const Relays& relays);
// The fields `id` and `after` of a line.
void read_order(TraceFields& fields, std::int64_t line, CopyOrder& order);
// What changes: a name, ranks, and perhaps one buffer.
Update read_update(TraceFields& fields, std::int64_t line);
// A buffer of the side "relay", on each of its ranks.
void read_relay(TraceFields& fields, const Stored& source, const Stored& destination,
                Relays& relays);

}  // namespace reshard::sim
