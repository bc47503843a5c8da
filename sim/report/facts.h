// SPDX-License-Identifier: BSD-3-Clause
// Texts and summaries that tables and pages share, for runs, replays and dispatched traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "sim/dispatch/dispatch.h"
#include "sim/replay/replay.h"
#include "sim/report/table.h"
#include "sim/study/run_facts.h"
#include "sim/study/studies.h"
#include "sim/study/tensors/job_facts.h"

namespace reshard::sim {

// ---- lines of facts that several tables share

template <class Values, class Text>
std::string joined(const Values& values, const char* separator, Text&& text_of) {
  std::string out;
  for (const auto& value : values)
    out += fmt::format("{}{}", out.empty() ? "" : separator, text_of(value));
  return out;
}

std::string ratio_of(std::int64_t time_ps, std::int64_t to_ps);

// These add nothing if there is nothing to report.
void add_cache(const std::optional<CacheStatistics>& cache, Facts& facts);
void add_classes(const std::vector<ClassUse>& classes, bool with_flows, Facts& facts);
void add_path(const std::optional<PathFacts>& path, Facts& facts);
void add_phases(const std::vector<PhaseTime>& phases, Facts& facts);
// How much the transport's time differs from that of links alone.
void add_transport(std::string_view transport, std::int64_t time_ps, std::int64_t ideal_time_ps,
                   Facts& facts);

// "128 of 128 nic.in, within 1 % of node36.gpu5.nic.in: 100.0 % used", in a run of `time_ps`.
std::string full_links_text(const FullLinks& full, std::int64_t time_ps);

// ---- a replayed trace; texts are empty if there is nothing to report

std::string proof_text(const ReplayReport& report);
std::string data_text(const ReplayReport& report);
// "3.200 ms more than without faults (25.600 ms); most of it at line 7 (3.000 ms longer)".
std::string faults_text(const ReplayReport& report);
// "rank 3, 10.000 ms after all others at line 7; together they waited 70.000 ms (and 2 more)".
std::string late_text(const ReplayReport& report);
// "lines 2-724: 308.737 ms instead of 323.154 ms"; no times for lines that were joined.
std::string together_text(const ReplayReport& report);
// The delayed launches that a swap would speed up, by gain, descending.
std::vector<Delayed> delayed_by_gain(const ReplayReport& report);

// Redistributions of one request by one planner: a trace repeats them, since the tensors of equal
// layers differ only in name. time_ps: from start to end of each in the run, summed.
struct RequestKind {
  const ReplayRow* first = nullptr;
  std::int64_t count = 0, bytes = 0, time_ps = 0;
};

// In order of first appearance; points into `rows`.
std::vector<RequestKind> kinds_of(const std::vector<ReplayRow>& rows);

// ---- a dispatched trace, by module and operator, and by collective

// Calls of one operator in one module. The times of redistributions are those of each alone.
struct OperatorFacts {
  std::string module, op;  // op: "redistribute" for explicit ones
  std::int64_t calls = 0, implicit = 0, explicit_ones = 0;
  std::int64_t compute_ps = 0;  // summed over the calls
  Moved moved;
  std::int64_t bound_ps = 0;
  OperatorFacts& operator+=(const OperatorFacts& more);  // adds counts, bytes and times
};
// Sorted by module, then by operator.
std::vector<OperatorFacts> operator_facts(const DispatchReport& report);

// A PyTorch bug and the calls of one operator that it affects.
struct FaultFacts {
  std::string op;
  std::string_view what;
  std::vector<std::int64_t> lines;
};
// In order of first appearance.
std::vector<FaultFacts> fault_facts(const DispatchReport& report);
// "line 4", "lines 4, 9, 12 and 7 more".
std::string lines_text(const std::vector<std::int64_t>& lines);

// Redistributions in one pass for one operator that use the same collectives.
struct CollectiveFacts {
  std::string pass;
  std::string steps;  // "all_gather on tp", "all_gather on dp, all_to_all on tp"
  std::string cause;  // the operator; "redistribute" for explicit ones
  Moved moved;
  std::int64_t bound_ps = 0;
};
// Calls with results that are known only from the trace, by operator.
std::vector<TakenAsRecorded> recorded_facts(const DispatchReport& report);

// By pass, then in order of first appearance.
std::vector<CollectiveFacts> collective_facts(const DispatchReport& report);

}  // namespace reshard::sim
