// SPDX-License-Identifier: BSD-3-Clause
// Reads a line of a file of copies: what is read on one rank and written on another.
#pragma once

#include <utility>

#include "core/judge/judge.h"
#include "core/stored/stored.h"
#include "sim/trace/line_reader.h"

namespace reshard::sim {

// Reads {"from": {"rank": 0, "tensor": "q_proj", "box": "0:4,:"}, "to": {"rank": 2, "buffer":
// "qkv", "offset": 0}}. Throws InputError.
std::pair<CopyEnd, CopyEnd> read_copy(TraceFields& fields, const Stored& source,
                                      const Stored& destination, const Relays& relays);
// Reads the fields `id` and `after`.
void read_order(TraceFields& fields, std::int64_t line, CopyOrder& order);
// Reads what changes: a name, ranks, and perhaps one buffer.
Update read_update(TraceFields& fields, std::int64_t line);
// Reads a buffer of the side "relay" on each of its ranks.
void read_relay(TraceFields& fields, const Stored& source, const Stored& destination,
                Relays& relays);

}  // namespace reshard::sim
