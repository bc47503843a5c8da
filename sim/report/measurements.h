// SPDX-License-Identifier: BSD-3-Clause
// Files with the measured times of a plan's runs on a backend: JSON lines, described in
// traces/measurements-format.md. `validate` writes them, calibration of a topology reads them.
//
// The file lists what each rank's part of each step carried, so it can be used without the plan.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/executor.h"
#include "core/plan/plan.h"

namespace reshard::sim {

// One rank's part of one step.
struct MeasuredPart {
  std::int32_t step;
  Rank rank;
  std::string kind = {};  // kind_text
  // For exchange: (peer, bytes) of the messages that the rank sends, and of those that it receives,
  // ascending by peer.
  std::vector<std::pair<Rank, std::int64_t>> sent = {}, received = {};
  // For collectives: the group, in its order. Otherwise empty.
  std::vector<Rank> group = {};
  // For collectives: what a rank contributes to an all_gather, gets from a reduce_scatter, holds in
  // an all_reduce, sends to each other rank in an all_to_all. For copy, fill, reduce: bytes
  // written.
  std::int64_t bytes = 0;
  friend bool operator==(const MeasuredPart&, const MeasuredPart&) = default;
};

struct Measurements {
  std::string version;              // of reshard
  std::string backend, library;     // "mpi", "Open MPI 4.1.4"
  std::string request, planner;     // request: Request::text
  std::string topology;             // the one that the plan was made for
  std::vector<Rank> ranks;          // ascending
  std::int64_t warm_up = 0;         // runs before the first one in `runs`
  std::vector<MeasuredPart> parts;  // ascending (step, rank)
  std::vector<Timeline> runs;       // each with one span per part, in the same order
};

// The parts of all ranks in all steps of the plan, ascending (step, rank).
std::vector<MeasuredPart> parts_of(const Plan& plan);

void write_measurements(std::ostream& out, const Measurements& measurements);
// `file` names the stream in messages. Throws InputError "FILE:LINE: FIELD: ...". Memory is bounded
// by the size of the input.
Measurements parse_measurements(std::istream& in, const std::string& file);

}  // namespace reshard::sim
