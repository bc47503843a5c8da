// SPDX-License-Identifier: BSD-3-Clause
// Traces in any format, recognised by content: read, links resolved, lines joined, calls decided,
// or refused; and the same text as the requests of a job.
#include <sstream>

#include "sim/dispatch/dispatch.h"
#include "sim/job/job_file.h"
#include "sim/trace/jobs/joined.h"
#include "sim/trace/trace.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

// On many axes, in lists of many tensors, candidates are many: not what is looked for here.
bool is_small(const sim::Trace& trace) {
  std::size_t tensors = 0;
  for (const sim::TraceOperation& operation : trace.operations)
    if (const auto* line = std::get_if<sim::TraceOperator>(&operation.body)) {
      if ((*line)->mesh->shape().size() > 2 || (*line)->mesh->size() > 64) return false;
      for (const auto& argument : (*line)->in) tensors += argument.values.size();
    }
  return tensors < 100;
}

void check_links(const sim::Trace& trace) {
  for (const sim::TraceOperation& operation : trace.operations) {
    if (trace.line_of(operation).number < 1) fuzz::broken("an operation without a line");
    for (OpId other : operation.after)
      if (to_index(other) >= trace.operations.size()) fuzz::broken("`after` names no operation");
  }
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    if (sim::parse_job(in, "input.jsonl").requests.empty()) fuzz::broken("a job of no request");
  });
  return fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    sim::Trace trace = sim::parse_trace(in, "input.jsonl");
    check_links(trace);
    if (trace.findings.empty()) {
      std::size_t fewer = 0;
      std::vector<sim::JoinedSet> sets = sim::joinable_sets(trace, false);
      for (const sim::JoinedSet& set : sets) fewer += set.size() - 1;
      sim::Trace together = sim::joined(trace, sets);
      check_links(together);
      if (together.operations.size() + fewer != trace.operations.size())
        fuzz::broken("lines were lost or doubled");
    }
    if (!is_small(trace)) return;
    sim::DispatchReport report = sim::dispatch(trace, {});
    for (const sim::TraceOperation& operation : trace.operations)
      if (std::holds_alternative<sim::TraceOperator>(operation.body))
        fuzz::broken("a call that is no operation yet");
  });
}
