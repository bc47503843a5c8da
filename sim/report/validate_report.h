// SPDX-License-Identifier: BSD-3-Clause
// The report of `validate` on a plan's run on a backend: its contents as values, and their
// writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/pattern/pattern.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

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
  std::size_t median_run = 0;  // the first run with the median as its total
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

// "schema": "reshard.validate/1". `verbose` adds the digest of every shard.
std::string validate_json(const ValidateReport& report);
std::string validate_table(const ValidateReport& report, bool verbose,
                           std::size_t width = kTableWidth);

}  // namespace reshard::sim
