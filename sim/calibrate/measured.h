// SPDX-License-Identifier: BSD-3-Clause
// Measured collectives, the input of calibration: printed by nccl-tests (text, or JSON with -J),
// logged by NCCL's Inspector plugin (JSON lines), or reported by `reshard validate --json`
// (validated.h).
//
// A text may hold the output of several runs, one after another, with prefixes added by launchers
// (log_lines.h). A run begins with a line that starts the header of nccl-tests ("# nThread",
// "# Collective test starting", "# nccl-tests version"). Its ranks are the lines "#  Rank  0 ...",
// or nThread x nGpus where there are none. Its collective is named in the header, in an earlier
// line that names the program ("./all_reduce_perf -b 8"), or in the name of the file. Information
// that is given twice must agree (printed_run.h).
//
// From the Inspector, lines with `coll_perf` are read; all lines with the same collective, ranks
// and bytes make one row with their median time.
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
  std::int32_t ranks;    // at least 2: 0 .. ranks-1
  std::int64_t bytes;    // as nccl-tests counts them: all bytes gathered, scattered or reduced; for
                         // an all_to_all, the bytes that one rank sends
  std::int64_t time_ps;  // out of place if both were run; above 0
  std::string place;     // "FILE:LINE"
};

// Rows of 0 bytes and of unsupported collectives (broadcast, reduce, sendrecv ..) are skipped and
// counted; so are rows with wrong values and rows without a time, which `notes` mentions. Throws
// InputError "FILE:LINE: expected ..., found ...".
struct MeasuredTable {
  std::vector<MeasuredCollective> rows;  // in the order of the file
  std::int64_t passed_over = 0;
  std::vector<std::string> notes;  // "log.txt:12: 3 rows without a time skipped"
};
MeasuredTable parse_measured(std::string_view text, const std::string& file);

// "all_reduce" for "all_reduce", "AllReduce", "all_reduce_perf", "./build/all_reduce_perf_mpi".
std::optional<CollectiveKind> collective_named(std::string_view name);

}  // namespace reshard::sim
