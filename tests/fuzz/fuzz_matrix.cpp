// SPDX-License-Identifier: BSD-3-Clause
// nccl-tests' matrix of bytes: read as one exchange whose messages all match, or refused.
#include <sstream>

#include "sim/trace/trace.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    sim::Trace trace = sim::parse_trace(in, "input.txt", "alltoallv-matrix");
    if (!trace.findings.empty()) fuzz::broken("a message without its other end");
    for (const sim::TraceOperation& operation : trace.operations) {
      const auto& end = std::get<sim::TraceEnd>(operation.body);
      if (end.bytes < 1 || end.rank == end.peer) fuzz::broken("a message that moves nothing");
    }
  });
}
