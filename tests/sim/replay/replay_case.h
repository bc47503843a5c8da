// SPDX-License-Identifier: BSD-3-Clause
// Shared by the replay tests: traces from text, and the real planners, proof, cache and
// store, as the tools make them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/store/data_check.h"
#include "sim/study/studies.h"
#include "sim/trace/trace.h"

namespace reshard::test {

inline sim::Trace trace_of(const std::string& text) {
  std::istringstream in(text);
  return sim::parse_trace(in, "t.jsonl");
}

// The header, then the lines.
inline sim::Trace trace_of(const std::string& header, const std::vector<std::string>& lines) {
  std::string text = header + "\n";
  for (const std::string& line : lines) text += line + "\n";
  return trace_of(text);
}

// `more`: further fields, each behind ", ".
inline std::string redistribute(const std::string& dtype, const std::string& shape,
                                const std::string& from, const std::string& to,
                                const std::string& mesh, const std::string& more = "") {
  return "{\"op\": \"redistribute\", \"dtype\": \"" + dtype + "\", \"shape\": " + shape +
         ", \"from\": \"" + from + "\", \"to\": \"" + to + "\", \"mesh\": \"" + mesh + "\"" + more +
         "}";
}

// One end of a message: `op` is send, recv, isend or irecv.
inline std::string end(const char* op, int rank, int peer, const std::string& more = "") {
  return fmt::format(R"({{"op": "{}", "rank": {}, "peer": {}, "bytes": 100000{}}})", op, rank, peer,
                     more);
}

// A rank's call of an all_reduce.
inline std::string call(int rank, const std::string& communicator, int stream = 0,
                        const std::string& more = "") {
  return fmt::format(R"({{"op": "collective", "kind": "all_reduce", "rank": {}, "comm": "{}", )"
                     R"("bytes": 8, "stream": {}{}}})",
                     rank, communicator, stream, more);
}

inline std::string compute(int rank, std::int64_t ps, const std::string& more = "") {
  return fmt::format(R"({{"op": "compute", "ranks": "{}", "duration_ps": {}{}}})", rank, ps, more);
}

class Rig {
 public:
  explicit Rig(const Topology& topology, std::string_view planner = "auto",
               std::int64_t capacity = 4096)
      : studies(std::make_shared<const Topology>(topology), find_planner(planner),
                {.cache_capacity = capacity, .transport = {TransportKind::Ideal, {}}}) {
    options.move_bytes = true;
  }

  sim::ReplayReport replay(const sim::Trace& trace,
                           std::int64_t budget_bytes = std::int64_t{2} << 30) {
    options.data_budget_bytes = budget_bytes;
    return sim::replay(trace, studies, options);
  }

  sim::ReplayOptions options;
  sim::Studies studies;
};

}  // namespace reshard::test
