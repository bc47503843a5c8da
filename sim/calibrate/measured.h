// SPDX-License-Identifier: BSD-3-Clause
// Measured collectives: as nccl-tests prints them (text, or JSON with -J), as NCCL's Inspector
// plugin logs them in a job (JSON lines), as `reshard validate --json` reports them (validated.h).
// What calibration fits a machine to.
//
// A text may hold the output of several runs, one after the other, with what launchers put before
// its lines (log_lines.h). A run begins with a line that nccl-tests starts its header with
// ("# nThread", "# Collective test starting", "# nccl-tests version"); its ranks are the lines
// "#  Rank  0 ...", or nThread x nGpus where there are none; its collective is named in its header,
// in a line before it that names the program ("./all_reduce_perf -b 8"), or in the name of the
// file. What is said twice must agree (printed_run.h).
//
// Lines of the Inspector that say `coll_perf` are read; of all that have the same collective, ranks
// and bytes one row is made, whose time is the median.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"

namespace reshard::sim {

struct MeasuredCollective {
  CollectiveKind kind;
  std::int32_t ranks;  // at least 2: 0 .. ranks-1
  std::int64_t bytes;  // as nccl-tests counts them: what is gathered, scattered, reduced; sent by a
                       // rank in an all_to_all
  std::int64_t time_ps;  // out of place where both were run; above 0
  std::string place;     // "FILE:LINE"
};

// Rows of 0 bytes and collectives that are not ours (broadcast, reduce, sendrecv ..) are passed
// over and counted; so are rows of wrong values and rows without a time, which is said in `notes`.
// Throws InputError "FILE:LINE: expected ..., found ...".
struct MeasuredTable {
  std::vector<MeasuredCollective> rows;  // in the order of the file
  std::int64_t passed_over = 0;
  std::vector<std::string> notes;  // "log.txt:12: 3 rows with wrong values (#wrong) passed over"
};
MeasuredTable parse_measured(std::string_view text, const std::string& file);

// "all_reduce" for "all_reduce", "AllReduce", "all_reduce_perf", "./build/all_reduce_perf_mpi".
std::optional<CollectiveKind> collective_named(std::string_view name);

}  // namespace reshard::sim
