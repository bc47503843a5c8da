// SPDX-License-Identifier: BSD-3-Clause
// A trace: what a job does, operation by operation, read from the native format (JSON lines,
// described in traces/README.md).
//
// Reading resolves everything that needs no plan: layouts and legality of requests, ids, matching
// of messages, cycles of `after`. Operations keep their place in the file: operation i of the trace
// is operation i of the workload, and its line is known, so that whatever goes wrong later can
// still be said in lines.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"
#include "core/layout/request.h"
#include "core/schedule/expansion.h"

namespace reshard::sim {

// Lines that say the same share one request; its own name is empty.
struct TraceRedistribute {
  std::shared_ptr<const Request> request;
};

struct TraceCompute {
  std::vector<Rank> ranks;
  std::int64_t duration_ps;
};

// One end of a message.
struct TraceEnd {
  enum class Side : std::uint8_t { Send, Receive } side;
  Rank rank, peer;
  std::int64_t bytes, tag;
  std::int32_t other = -1;  // operation of the other end; -1 where none matches
};

struct TraceCollective {
  CollectiveKind kind;
  Algorithm algorithm;
  std::vector<Rank> ranks;
  std::int64_t bytes;  // as Expansion's `elements`
};

struct TraceOperation {
  std::int64_t line;
  std::string id, name;  // empty where none was given
  std::int32_t stream = 0;
  std::vector<OpId> after;  // ascending, each once
  std::variant<TraceRedistribute, TraceCompute, TraceEnd, TraceCollective> body;
};

// Something that makes a well-formed trace impossible to run: a message without its other end, ends
// that wait for each other. The user's check does not hold (exit code 1), so it is a value and not
// an exception.
struct TraceFinding {
  std::vector<std::int64_t> lines;  // ascending
  std::string what;                 // one sentence with "FILE:LINE"
};

struct Trace {
  std::string file;
  std::string topology;  // as in the header; empty where it names none
  std::vector<TraceOperation> operations;
  std::vector<TraceFinding> findings;  // messages that do not match; empty: everything does

  std::int64_t line_of(OpId op) const { return operations[to_index(op)].line; }
  // "FILE:LINE".
  std::string place_of(OpId op) const;
};

// Reads the native format from a stream; `file` names it in messages. Throws InputError "FILE:LINE:
// FIELD: ...". Memory is bounded by what was read, a line by 64 MiB, the ranks that all operations
// name together by 2^25.
Trace parse_trace(std::istream& in, const std::string& file);
// The same from a file. Throws InputError for a file that is missing, unreadable or a directory.
Trace read_trace(const std::string& path);

// Ranks with a part in the operation, as written; of a message end its own rank.
std::vector<Rank> ranks_of(const TraceOperation& operation);
// Highest rank that the trace names; -1 without operations.
std::int64_t highest_rank(const Trace& trace);

// "redistribute", "compute", "send", "recv", "collective".
std::string_view op_text(const TraceOperation& operation);

}  // namespace reshard::sim
