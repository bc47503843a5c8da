// SPDX-License-Identifier: BSD-3-Clause
// The same checks for every executor: the store, the CUDA backend, NCCL, MPI, and those on
// stand-ins. Each case is planned and proved, run by the executor, and its destination shards are
// compared with the store's, bit for bit (tests/sweep compares the store itself with the oracle).
//
// If the request folds floating values and the executor keeps the declared order, the data are such
// that every order of folding gives different bits; else they are the pattern's, exact in any
// order. A quarter of the random plans are of jobs of 2 to 20 tensors, some others join two plans,
// and half have their collectives in halves, over boxes. Some draws are of a model in the buffers
// of its ranks, which are compared by the number of every element instead. Every fourth case runs
// twice on one prepared plan. All processes of an executor call check_conformance with the same
// options; each checks the shards that it holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/executor.h"

namespace reshard::test {

struct ConformanceOptions {
  std::int32_t world = 8;          // ranks 0 .. world-1 can be used
  std::int64_t draws = 4'000;      // seeded draws, as many requests as asked for
  std::uint64_t seed = 1;          // of the first draw
  std::uint64_t models_every = 8;  // of the draws, one in so many is of a model
  bool small_cases =
      false;  // also every case of tests/sweep that fits the world, through every planner
  std::int64_t every = 1;  // of the small cases, only each so many-th
};

struct ConformanceReport {
  std::int64_t requests = 0, runs = 0, rough_runs = 0, several_tensors = 0, jobs = 0, models = 0;
  std::int64_t failed = 0;
  std::vector<std::string> failures;  // at most ten
  friend bool operator==(const ConformanceReport&, const ConformanceReport&) = default;
};

// At the root the report of all processes together, elsewhere the process's own. A BackendError
// ends it.
ConformanceReport check_conformance(Executor& executor, const ConformanceOptions& options);

std::string text(const ConformanceReport& report);

}  // namespace reshard::test
