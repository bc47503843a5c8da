// SPDX-License-Identifier: BSD-3-Clause
// The report model: all that the reports on a plan, on its run on a backend and on a sweep say, as
// values. (A replay's report is its own result: sim/replay/replay.h.)
//
// Everything here was computed elsewhere; this file chooses. The writers name and format: tables
// for people and CSV (table_writer.cpp), JSON (json_writer.cpp; fields and their order are
// described in tools/json-schemas.md), and topologies (topology_writer.cpp). Timelines are drawn by
// perfetto.h.
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
  std::optional<std::int64_t> start_ps, end_ps;  // where it was timed
  std::vector<std::string> why = {};             // planner's reasons, where asked for

  std::optional<std::int64_t> duration_ps() const;
};

struct RunReport {
  explicit RunReport(const Plan& of) : tensors(of.tensors), ranks(of.ranks) {}

  IndexVector<TensorId, Request> tensors;  // at least one
  std::vector<Rank> ranks;                 // ascending: those of all tensors
  std::string topology;
  std::int32_t topology_devices = 0;
  std::vector<std::string> assumed = {};  // of the topology, where its file does not say all
  std::string planner;                    // whose steps these are
  std::string planner_asked;              // "auto" where it chose `planner`
  IndexVector<StepId, StepRow> steps;
  std::vector<std::string> why;                        // reasons for the plan as a whole
  std::vector<Explanation::Alternative> alternatives;  // what `auto` weighed, where asked for
  PlanBytes bytes;                                     // by rank in the order of `ranks`
  std::int64_t padding_total = 0;
  std::string_view transport;  // whose time this is
  std::int64_t time_ps = 0;
  std::int64_t ideal_time_ps = 0;  // of links alone
  Bound bound;
  // PyTorch's model of its own planner's steps, of all tensors together, and which planner that is;
  // none across meshes.
  std::optional<double> torch_cost_us;
  std::string_view torch_planner;  // "greedy", "min-cost", "greedy and min-cost"
  std::vector<TorchDefect> torch_defects;
  std::vector<ClassUse> classes;
  std::vector<LinkUse> links;                // the most used, descending
  std::optional<CommunicatorUse> first_use;  // where it counts
  std::optional<PathFacts> path;
  std::optional<DataReport> data;
  std::optional<CacheStatistics> cache;
  std::vector<PhaseTime> phases;  // of the command; empty where nobody asked
};

// What was asked for, "name: f32[..] ..", by tensor and numbered where there are several; of many
// the first, and how many more there are.
std::vector<std::string> request_lines(const RunReport& report);

// All that a study tells. Critical path, data, cache and PyTorch's cost are added by the caller.
RunReport report_on(Study& study);

// time / bound in ten-thousandths, rounded half up; none at bound 0.
std::optional<std::int64_t> ratio_e4(std::int64_t time_ps, std::int64_t bound_ps);

// ---- its run on a backend: `validate`

// What several runs took: the median says what is usual, least and most how far runs are apart. The
// median is the middle of the sorted values, of an even number the lower of the two: always a value
// that was measured.
struct Spread {
  std::int64_t median_ps = 0, min_ps = 0, max_ps = 0;
  friend bool operator==(const Spread&, const Spread&) = default;
};
// At least one value.
Spread spread_of(std::vector<std::int64_t> values_ps);

// A step lasts from the start of its first part to the end of its last, over all ranks, as in the
// simulation that it is set beside.
struct MeasuredTimes {
  std::vector<std::optional<Spread>> steps;  // by step; none where nobody has a part
  Spread total;
  std::size_t median_run = 0;  // the run whose total is the median, the earliest of equals
};
// At least one run; spans of all ranks.
MeasuredTimes times_of(std::span<const Timeline> runs, std::size_t step_count);

// What became of one rank's destination shard of one tensor.
struct ShardFacts {
  TensorId tensor;
  Rank rank;
  std::int64_t elements = 0;
  Digest digest;
  std::optional<PatternMismatch> wrong;  // against what the request defines
  std::optional<Digest> expected;        // the store's, where it ran
  bool differs_from_store() const { return expected && *expected != digest; }
};

struct ValueFacts {
  std::vector<ShardFacts> shards;  // tensor by tensor, ascending by rank
  bool store_ran = false;
  std::string note;  // why the store did not run
  // Over all destination shards as in simulate; none where they hold nothing, differ, or were never
  // in one process.
  std::optional<Digest> digest;

  std::int64_t elements() const;
  std::int64_t wrong() const;         // elements
  std::int64_t unlike_store() const;  // shards
  // Ranks with a shard of which this is true.
  std::int64_t ranks_where(const std::function<bool(const ShardFacts&)>& is_true) const;
  const ShardFacts* first_wrong() const;  // null where none is
  Digest digest_of_digests() const;       // in the order of `shards`: what can always be printed
  bool hold() const { return wrong() == 0 && unlike_store() == 0; }
};

struct ValidateReport {
  explicit ValidateReport(RunReport prediction) : predicted(std::move(prediction)) {}

  RunReport predicted;
  std::string backend, library;  // "mpi", "Open MPI 4.1.4"
  std::int32_t processes = 1, hosts = 1;
  bool models_this_machine = false;  // whether the topology's links are of the kind that it used
  bool sums_in_own_order = false;    // Executor::folds_in_own_order
  std::int64_t iterations = 0, warm_up = 0;
  MeasuredTimes measured;
  ValueFacts values;
};

// One sentence per kind of fault, for standard error; nothing where all values hold.
std::vector<std::string> faults_of(const ValidateReport& report);

// Bytes per second as nccl-tests prints them, of any plan; none where no time passes. algbw: bytes
// of the largest shard on either side (of all tensors' shards on the rank that holds most) over the
// time. busbw: bytes that the fullest rank receives over the time. For one collective along a ring
// they are what nccl-tests' definitions come to.
struct Bandwidths {
  std::optional<std::int64_t> algorithm_bytes_per_s, bus_bytes_per_s;
};
Bandwidths bandwidths_of(std::span<const Request> tensors, std::int64_t bytes_received_max,
                         std::int64_t time_ps);
Bandwidths bandwidths_of(const RunReport& report, std::int64_t time_ps);

// ---- planners side by side over many requests: `sweep`

struct SweepRow {
  std::string mesh, from, to, planner;
  // None where the planner refuses the request.
  std::optional<std::int64_t> time_ps, bytes_received_max;
  std::int64_t bound_ps = 0;
  Bandwidths rates;
  std::string refusal;
  std::optional<std::int64_t> first_use_ps = {};  // where it counts
  // Of p2p where first use counts: from how many uses on it takes least in all, against the other
  // planners of the sweep but auto; none: never.
  std::optional<std::int64_t> won_back_after = {};
  std::optional<LostTime> lost = {};  // of the worst of a planner on a mesh
};
// Fills won_back_after of the rows of one pair.
void win_back(std::span<SweepRow> rows);

std::string pair_text(const SweepRow& row);  // "S(0)R -> RS(0)"

// Over the pairs of a mesh with a bound above 0 that the planner answers.
struct SweepSummary {
  std::string mesh, planner;
  std::int64_t pairs = 0, refused = 0, at_bound = 0;  // at_bound: ratio exactly 1
  std::optional<std::int64_t> geometric_mean_e4;
  const SweepRow* worst = nullptr;  // decided exactly, ties by the first row
};

struct SweepReport {
  Shape shape;
  DType dtype{};
  std::string topology;  // of the last mesh where they differ
  std::vector<std::string> meshes;
  // Requests, those of them that some planner answered, and pairs that DTensor itself forbids.
  std::int64_t pairs = 0, planned = 0, forbidden = 0;
  bool cold = false;
  std::vector<std::string> planners;
  std::vector<SweepRow> rows;     // pair after pair, in each planner after planner
  std::vector<PhaseTime> phases;  // of the command; empty where nobody asked
};

// One per mesh and planner, in the order of `meshes`, then of `planners`.
std::vector<SweepSummary> summarize(const SweepReport& report);

// ---- a machine beside measurements: `calibrate`

struct ErrorsBeforeAfter {
  std::vector<RowError> before, after;  // of the same rows
};
struct CalibrationReport {
  std::string topology;
  bool compared = false;                   // with what was measured, and nothing fitted
  std::optional<Calibration> calibration;  // none: nothing was fitted
  // Of matrices of copies: what links changed to, and pairs of GPUs.
  std::vector<Fitted> links;
  std::vector<MeasuredPairs> pairs;
  ErrorsBeforeAfter fitted, held;  // the rows must outlive the report
  std::int64_t passed_over = 0;
  std::vector<std::string> notes;  // of rows that were passed over or not taken as they are
};

// ---- the writers; tables are at most `width` wide where that is possible

// "schema": "reshard.plan/1". In the table `explain` adds the reasons, `verbose` the cache, either
// the critical path.
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
// What PyTorch warns of, or would do with messages that name no communicator; empty: nothing.
std::string warning_text(const ReplayReport& report);
// What waits for what in a finding's circle; empty where it has none.
std::string circle_table(const TraceFinding& finding, std::size_t width = kTableWidth);

// "schema": "reshard.sweep/1". `verbose` adds a row per pair with one column per planner.
std::string sweep_json(const SweepReport& report);
std::string sweep_table(const SweepReport& report, bool verbose, std::size_t width = kTableWidth);
// RFC 4180 with a header row.
std::string sweep_csv(const SweepReport& report);

// A topology: devices, links, groups, and which route joins which pair of devices of a node.
// "schema": "reshard.topology/1".
std::string topology_json(const Topology& topology);
std::string topology_table(const Topology& topology, std::size_t width = kTableWidth);

std::string calibration_table(const CalibrationReport& report, bool every_row, std::size_t width);
std::string calibration_json(const CalibrationReport& report);

}  // namespace reshard::sim
