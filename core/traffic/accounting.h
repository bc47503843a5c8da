// SPDX-License-Identifier: BSD-3-Clause
// What a plan costs in bytes, from the plan alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

struct PlanBytes {
  // Received from other ranks, padding included, by the default expansion.
  std::vector<std::int64_t> received_per_step;  // summed over ranks
  std::vector<std::int64_t> received_per_slot;  // summed over steps
  std::int64_t received_max = 0, received_total = 0;
  // Source (kept to the end) + destination (all the time) + the most that temporaries hold at one
  // time, from the first step that writes one to the last that reads it, however steps overlap
  // (held_temporaries.h). Sharing of replicas is not deducted.
  std::vector<std::int64_t> peak_per_slot;
  std::int64_t peak_max = 0;
};

PlanBytes count_bytes(const Plan& plan);

// ---- Who sends how much to whom over a whole plan: what a stock benchmark needs to measure the
// plan's traffic without knowing plans.
//
// Messages count exactly, collectives by their default expansion, so that what a rank receives is
// what count_bytes says it does. Local copies are no traffic.

struct PairBytes {
  Slot source, destination;
  std::int64_t bytes;
  friend bool operator==(const PairBytes&, const PairBytes&) = default;
};

// Ascending by (source, destination), each pair once, none of 0 bytes. Throws InputError where the
// plan's steps connect more than 2^26 pairs.
std::vector<PairBytes> traffic_of(const Plan& plan);

// The file that nccl-tests' alltoallv_perf reads (NCCL_TESTS_ALLTOALLV_MATRIX_FILE): one line per
// rank 0 .. the greatest of the plan, in it the bytes that it sends to each. The file has no
// comments. The program cuts every cell to a multiple of 16 and must be given `-b` and `-e` of at
// least `size_bytes`.
struct AlltoallvMatrix {
  std::string text;
  std::int64_t size_bytes = 0;  // the largest sum of a row or a column
};

// Throws InputError where the greatest rank is kMaxMatrixRanks or above: the file is square in it.
AlltoallvMatrix alltoallv_matrix(const Plan& plan);

}  // namespace reshard
