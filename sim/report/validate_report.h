// SPDX-License-Identifier: BSD-3-Clause
// The report of `reshard validate`: a plan that ran on a backend, its values beside those of the
// request and the store, its times beside those of the engine.
//
// The prediction is a report of its own (run_report.h); what was measured and compared is added
// here. JSON fields are described in tools/json-schemas.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/digest.h"
#include "core/layout/box.h"
#include "core/pattern/pattern.h"
#include "sim/report/measured_times.h"
#include "sim/report/run_report.h"

namespace reshard::sim {

// What became of one rank's destination shard.
struct ShardFacts {
  Rank rank;
  std::int64_t elements = 0;
  Digest digest;
  std::optional<PatternMismatch> wrong;  // against what the request defines
  std::optional<Digest> expected;        // the store's, where it ran
  bool differs_from_store() const { return expected && *expected != digest; }
};

struct ValueFacts {
  std::vector<ShardFacts> shards;  // ascending by rank
  bool store_ran = false;
  std::string note;              // why the store did not run
  std::optional<Digest> digest;  // over all destination shards as in simulate; none where they hold
                                 // nothing, differ, or were never in one process

  std::int64_t elements() const;
  std::int64_t wrong() const;         // elements
  std::int64_t unlike_store() const;  // shards
  bool hold() const { return wrong() == 0 && unlike_store() == 0; }
};

struct ValidateReport {
  RunReport predicted;
  std::string backend, library;  // "mpi", "Open MPI 4.1.4"
  std::int32_t processes = 1, hosts = 1;
  bool models_this_machine =
      false;  // whether the topology's links are of the kind that the backend used
  bool sums_in_own_order = false;  // Executor::folds_in_own_order
  std::int64_t iterations = 0, warm_up = 0;
  MeasuredTimes measured;
  ValueFacts values;
};

// "schema": "reshard.validate/1".
std::string validate_json(const ValidateReport& report);
// `verbose` adds the digest of every shard.
std::string validate_table(const ValidateReport& report, bool verbose);

// One sentence per kind of fault, for standard error; nothing where all values hold.
std::vector<std::string> faults_of(const ValidateReport& report, const Shape& shape);

// Digest over the shards' digests, ascending by rank: what can always be printed.
Digest digest_of_digests(const std::vector<ShardFacts>& shards);
// Bytes that the fullest rank receives per second; none where no time passes.
std::optional<std::int64_t> received_bytes_per_s(const RunReport& report, std::int64_t time_ps);

}  // namespace reshard::sim
