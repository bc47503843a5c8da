// SPDX-License-Identifier: BSD-3-Clause
// Data on which the order of floating sums and products has an effect, and functions that run a
// plan on given shards.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/layout/request.h"
#include "core/plan/executor.h"
#include "tests/support/prng.h"

namespace reshard::test {

using Shards = std::map<Rank, std::vector<std::byte>>;

// Source shards by rank, with values of moderate size and full significands (any bits for dtypes
// that do not round), so that sums round, and differently in every order. Ranks that hold the same
// addend of the same elements hold the same bits.
Shards rough_sources(Prng& prng, const Request& request);

// The pattern's values.
Shards pattern_sources(const Request& request);

// Passes a tensor's source shards to a prepared plan.
void fill(PreparedPlan& prepared, const Shards& sources, TensorId tensor);

// Prepares, fills, runs once and takes: for a plan of one tensor.
void run_once(Executor& executor, const Plan& plan, const FillSource& fill,
              const TakeDestination& take);

// The destination shards of a plan, by tensor, after a run on these source shards; only those that
// the executor's process holds.
std::vector<Shards> moved(Executor& executor, const Plan& plan, const std::vector<Shards>& sources);

// The same for a plan of one tensor.
Shards moved(Executor& executor, const Plan& plan, const Shards& sources);

}  // namespace reshard::test
