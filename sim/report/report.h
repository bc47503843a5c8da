// SPDX-License-Identifier: BSD-3-Clause
// The report model: the contents of the reports on a plan, on its run on a backend, on a sweep and
// on a calibration, as values. (A replay's report is the result of replay(): sim/replay/replay.h.)
//
// Everything here is computed elsewhere; this file selects it. The writers (writers/*.cpp) name and
// format it as tables, CSV and JSON. The fields of JSON and their order are described in
// tools/json-schemas.md. writers/perfetto.h draws timelines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/pattern/pattern.h"
#include "core/planners/planner.h"
#include "core/topology/topology.h"
#include "core/torch/known_defects.h"
#include "sim/calibrate/fit.h"
#include "sim/calibrate/links.h"
#include "sim/replay/replay.h"
#include "sim/report/table.h"
#include "sim/study/lost_time.h"
#include "sim/study/run_facts.h"
#include "sim/study/study.h"

namespace reshard::sim {

// ---- one plan: `plan` and `simulate`

struct StepRow {
  std::string_view kind;  // kind_text
  std::vector<int> axes;
  std::vector<Rank> ranks;
  std::int64_t bytes = 0;
  std::optional<std::int64_t> start_ps, end_ps;  // first start and last end on any rank
  std::vector<std::string> why = {};             // the planner's reasons, if requested

  std::optional<std::int64_t> duration_ps() const;
};

struct RunReport {
  explicit RunReport(const Plan& of) : tensors(of.tensors), ranks(of.ranks) {}

  IndexVector<TensorId, Request> tensors;  // at least one
  std::vector<Rank> ranks;                 // of all tensors, ascending
  std::string topology;
  std::int32_t topology_devices = 0;
  std::vector<std::string> assumed = {};  // what the topology assumes because its file omits it
  std::string planner;                    // that made the steps
  std::string planner_asked;              // "auto" if it chose `planner`
  IndexVector<StepId, StepRow> steps;
  std::vector<std::string> why;                        // reasons for the plan as a whole
  std::vector<Explanation::Alternative> alternatives;  // what `auto` compared, if requested
  PlanBytes bytes;                                     // by rank in the order of `ranks`
  std::int64_t padding_total = 0;
  std::string_view transport;
  std::int64_t time_ps = 0;        // by that transport
  std::int64_t ideal_time_ps = 0;  // with links alone
  Bound bound;
  // The cost of the steps of PyTorch's own planner by PyTorch's model, summed over tensors, and
  // which planner that is; none across meshes.
  std::optional<double> torch_cost_us;
  std::string_view torch_planner;  // "greedy", "min-cost", "greedy and min-cost"
  std::vector<TorchDefect> torch_defects;
  std::vector<ClassUse> classes;
  std::vector<LinkUse> links;                // the busiest, descending
  std::optional<CommunicatorUse> first_use;  // with --cold
  std::optional<PathFacts> path;
  std::optional<DataReport> data;
  std::optional<CacheStatistics> cache;
  std::vector<PhaseTime> phases;  // of the command; empty unless requested
};

// The request, one line "name: f32[..] .." per tensor, numbered if there are several; of many only
// the first, and how many more there are.
std::vector<std::string> request_lines(const RunReport& report);

// Everything that comes from a study. The caller adds critical path, data, cache and PyTorch's
// cost.
RunReport report_on(Study& study);

// time / bound in units of 1/10,000, rounded half up; none if the bound is 0.
std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps);

// ---- its run on a backend: `validate`

// The times of several runs. The median is the middle one of the sorted values, the lower of the
// two if their number is even, so that it is always a measured value.
struct Spread {
  std::int64_t median_ps = 0, min_ps = 0, max_ps = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
// At least one value.
Spread spread_of(std::vector<std::int64_t> values_ps);

// A step lasts from its first start to its last end on any rank, as in the simulation that it is
// compared with.
struct MeasuredTimes {
  std::vector<std::optional<Spread>> steps;  // by step; none if no rank has a part
  Spread total;
  std::size_t median_run = 0;  // the first run whose total is the median
};
// At least one run; spans of all ranks.
MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count);

// One rank's destination shard of one tensor after the run.
struct ShardFacts {
  TensorId tensor;
  Rank rank;
  std::int64_t elements = 0;
  Digest digest;
  std::optional<PatternMismatch> wrong;  // compared with what the request defines
  std::optional<Digest> expected;        // the store's, if it ran
  bool differs_from_store() const { return expected && *expected != digest; }
};

struct ValueFacts {
  std::vector<ShardFacts> shards;  // ascending by tensor, then by rank
  bool store_ran = false;
  std::string note;  // why the store did not run
  // Over all destination shards, as in simulate; none if they hold nothing, are wrong, or were
  // never in one process.
  std::optional<Digest> digest;

  std::int64_t elements() const;
  std::int64_t wrong() const;         // elements
  std::int64_t unlike_store() const;  // shards
  // The number of ranks with a shard for which this is true.
  std::int64_t ranks_where(const std::function<bool(const ShardFacts&)>& is_true) const;
  const ShardFacts* first_wrong() const;  // null if none is wrong
  Digest digest_of_digests() const;       // in the order of `shards`; always available
  bool hold() const { return wrong() == 0 && unlike_store() == 0; }
};

struct ValidateReport {
  explicit ValidateReport(RunReport prediction) : predicted(std::move(prediction)) {}

  RunReport predicted;
  std::string backend, library;  // "mpi", "Open MPI 4.1.4"
  std::int32_t processes = 1, hosts = 1;
  bool models_this_machine = false;  // the topology has the kind of links that the backend used
  bool sums_in_own_order = false;    // Executor::folds_in_own_order
  std::int64_t iterations = 0, warm_up = 0;
  MeasuredTimes measured;
  ValueFacts values;
};

// One sentence per kind of fault, for standard error; empty if all values hold.
std::vector<std::string> faults_of(const ValidateReport& report);

// The bandwidths that nccl-tests prints, for any plan; none if no time passes. algbw: bytes of the
// largest shard on either side / time; with several tensors, of all shards of the rank that holds
// most. busbw: bytes received by the rank that receives most / time. For a single ring collective
// both agree with nccl-tests.
struct Bandwidths {
  std::optional<std::int64_t> algorithm_bytes_per_s, bus_bytes_per_s;
};
Bandwidths bandwidths_of(std::span<const Request> tensors, std::int64_t bytes_received_max,
                         std::int64_t time_ps);
Bandwidths bandwidths_of(const RunReport& report, std::int64_t time_ps);

// ---- planners compared over many requests: `sweep`

struct SweepRow {
  std::string mesh, from, to, planner;
  // None if the planner refuses the request.
  std::optional<std::int64_t> time_ps, bytes_received_max;
  std::int64_t bound_ps = 0;
  Bandwidths rates;
  std::string refusal;
  std::optional<std::int64_t> first_use_ps = {};  // with --cold
  // For p2p, with --cold: after how many uses its total time, first use included, is the least of
  // all planners of the sweep but auto; none: never.
  std::optional<std::int64_t> won_back_after = {};
  std::optional<LostTime> lost = {};  // for the worst pair of a planner on a mesh
};
// Sets won_back_after in the rows of one pair.
void win_back(std::span<SweepRow> rows);

std::string pair_text(const SweepRow& row);  // "S(0)R -> RS(0)"

// One planner on one mesh, over the pairs with a bound above 0 that it does not refuse.
struct SweepSummary {
  std::string mesh, planner;
  std::int64_t pairs = 0, refused = 0, at_bound = 0;  // at_bound: ratio exactly 1
  std::optional<std::int64_t> geometric_mean_e4;
  const SweepRow* worst = nullptr;  // compared without rounding; the first of equals
};

struct SweepReport {
  Shape shape;
  DType dtype{};
  std::string topology;  // of the last mesh if they differ
  std::vector<std::string> meshes;
  // Requests; those that at least one planner planned; pairs that DTensor itself forbids.
  std::int64_t pairs = 0, planned = 0, forbidden = 0;
  bool cold = false;
  std::vector<std::string> planners;
  std::vector<SweepRow> rows;     // by pair, then by planner
  std::vector<PhaseTime> phases;  // of the command; empty unless requested
};

// One per mesh and planner, in the order of `meshes`, then of `planners`.
std::vector<SweepSummary> summarize(const SweepReport& report);

// ---- a topology compared with measurements: `calibrate`

struct ErrorsBeforeAfter {
  std::vector<RowError> before, after;  // of the same rows
};
struct CalibrationReport {
  std::string topology;
  bool compared = false;                   // only compared, nothing fitted
  std::optional<Calibration> calibration;  // none: nothing was fitted
  // From matrices of copies: the fitted links, and pairs of GPUs by path class.
  std::vector<Fitted> links;
  std::vector<MeasuredPairs> pairs;
  ErrorsBeforeAfter fitted, held;  // the rows must outlive the report
  std::int64_t passed_over = 0;
  std::vector<std::string> notes;  // on rows that were skipped or changed
};

// ---- the writers; tables are at most `width` wide if possible

// "schema": "reshard.plan/1". In the table, `explain` adds the reasons, `verbose` the cache, and
// either of them the critical path.
std::string plan_json(const RunReport& report);
std::string plan_table(const RunReport& report, bool explain, bool verbose,
                       std::size_t width = kTableWidth);

// "schema": "reshard.simulate/1". `verbose` adds the cache and the critical path.
std::string simulate_json(const RunReport& report);
std::string simulate_table(const RunReport& report, bool verbose, std::size_t width = kTableWidth);

// "schema": "reshard.validate/1". `verbose` adds the digest of every shard.
std::string validate_json(const ValidateReport& report);
std::string validate_table(const ValidateReport& report, bool verbose,
                           std::size_t width = kTableWidth);

// "schema": "reshard.replay/1". `verbose` adds the critical path and a row per operation.
std::string replay_json(const ReplayReport& report);
std::string replay_table(const ReplayReport& report, bool verbose, std::size_t width = kTableWidth);
// PyTorch's own warning, or how messages that name no communicator would hang in PyTorch; empty if
// neither applies.
std::string warning_text(const ReplayReport& report);
// The cycle of waits of a finding; empty if it has none.
std::string circle_table(const TraceFinding& finding, std::size_t width = kTableWidth);

// "schema": "reshard.sweep/1". `verbose` adds a row per pair with one column per planner.
std::string sweep_json(const SweepReport& report);
std::string sweep_table(const SweepReport& report, bool verbose, std::size_t width = kTableWidth);
// RFC 4180 with a header row.
std::string sweep_csv(const SweepReport& report);

// Devices, links, groups, and the route of each pair of devices of a node. "schema":
// "reshard.topology/1".
std::string topology_json(const Topology& topology);
std::string topology_table(const Topology& topology, std::size_t width = kTableWidth);

// "schema": "reshard.calibrate/1". `every_row` adds a row per measurement.
std::string calibration_table(const CalibrationReport& report, bool every_row, std::size_t width);
std::string calibration_json(const CalibrationReport& report);

}  // namespace reshard::sim
