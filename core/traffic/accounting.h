// SPDX-License-Identifier: BSD-3-Clause
// Bytes that a plan receives, holds and sends, computed from the plan alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace reshard {

struct PlanBytes {
  // Bytes received from other ranks, padding included, with the default expansions.
  std::vector<std::int64_t> received_per_step;  // summed over ranks
  std::vector<std::int64_t> received_per_slot;  // summed over steps
  std::int64_t received_max = 0, received_total = 0;
  // Source (kept to the end) + destination (held throughout) + the most that temporaries hold at
  // any one time, each from the first step that writes it to the last that reads it, however steps
  // overlap (held_memory.h has the rules, and what a plan that frees sources holds). Replicas that
  // could share memory are each counted in full. Packed messages are not part of it.
  std::vector<std::int64_t> peak_per_slot;
  std::int64_t peak_max = 0;
};

PlanBytes count_bytes(const Plan& plan);

// ---- The bytes each rank sends to each other over a whole plan: enough for a stock benchmark to
// measure the plan's traffic without knowing about plans.
//
// Messages count exactly, collectives by their default expansion, so a rank receives what
// count_bytes reports. Local copies are not traffic.

struct PairBytes {
  Slot source, destination;
  std::int64_t bytes;
  friend bool operator==(const PairBytes&, const PairBytes&) = default;
};

// Ascending by (source, destination), each pair once, none with 0 bytes. Throws InputError where
// the steps together name more than 2^26 pairs.
std::vector<PairBytes> traffic_of(const Plan& plan);

// The file that nccl-tests' alltoallv_perf reads (NCCL_TESTS_ALLTOALLV_MATRIX_FILE): one line per
// rank, from 0 to the plan's highest, with the bytes that it sends to each rank. The format has no
// comments. The program rounds every cell down to a multiple of 16 and needs `-b` and `-e` of at
// least `size_bytes`.
struct AlltoallvMatrix {
  std::string text;
  std::int64_t size_bytes = 0;  // the largest row or column sum
};

// Throws InputError where the highest rank is kMaxMatrixRanks or above: the file grows with its
// square.
AlltoallvMatrix alltoallv_matrix(const Plan& plan);

}  // namespace reshard
