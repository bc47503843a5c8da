// SPDX-License-Identifier: BSD-3-Clause
// Traces in the format that their content shows: read, links resolved, or refused.
#include <sstream>

#include "sim/trace/trace.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    sim::Trace trace = sim::parse_trace(in, "input.jsonl");
    for (const sim::TraceOperation& operation : trace.operations) {
      if (trace.line_of(operation).number < 1) fuzz::broken("an operation without a line");
      for (OpId other : operation.after)
        if (to_index(other) >= trace.operations.size()) fuzz::broken("`after` names no operation");
    }
  });
}
