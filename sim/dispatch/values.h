// SPDX-License-Identifier: BSD-3-Clause
// The values of a trace's calls: every tensor on every rank, redistributed by plans through the
// store, worked on by each rank with the operator on its own shards; and each call's outputs, put
// together, beside the operator on the whole tensors.
//
// Two results agree where they are equal, or for floating dtypes differ by no more than
//
//   eps * (16 + L) * (|expected| + largest |expected| of the tensor)
//
// with eps that of the coarsest floating dtype among output and inputs (2^-23 of f32) and L as many
// elements of the largest input as stand behind one of the output: sums in another order. NaN
// equals NaN.
#pragma once

#include "sim/dispatch/dispatch.h"
#include "sim/dispatch/sharded.h"

namespace reshard::sim {

// What that takes, roughly in operations; and as much as people wait for, about a minute.
std::int64_t values_effort(const DispatchReport& report);
inline constexpr std::int64_t kMostValuesEffort = 200'000'000'000;

// `done` calls of `total`.
using OnCall = std::function<void(std::int64_t done, std::int64_t total)>;

// Counts what is compared; what is wrong becomes a finding that names the operator, the rank and
// the element. A value is held until the last line that names it. Throws InputError for what cannot
// be computed.
void check_values(const Trace& trace, DispatchReport& report, const PlanOf& plan_of,
                  const OnCall& on_call = {});

}  // namespace reshard::sim
