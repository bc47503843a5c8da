// SPDX-License-Identifier: BSD-3-Clause
#include "sim/exports/exports.h"

#include <fmt/core.h>

#include "core/text/plan_text.h"
#include "core/traffic/accounting.h"

namespace reshard::sim {
namespace {

Exported export_matrix(const ExportInput& input) {
  AlltoallvMatrix matrix = alltoallv_matrix(input.plan);
  std::int64_t size_bytes = (matrix.size_bytes + 15) / 16 * 16;
  // -a 3 reports the slowest rank's time.
  return {matrix.text, fmt::format("reshard: with this output in traffic.txt: "
                                   "NCCL_TESTS_ALLTOALLV_MATRIX_FILE=traffic.txt "
                                   "mpirun -np {0} alltoallv_perf -b {1} -e {1} -a 3\n",
                                   to_int(input.plan.ranks.back()) + 1, size_bytes)};
}

constexpr ExportRow kRows[] = {
    {"plan", "the plan as text, which --plan reads",
     [](const ExportInput& input) { return Exported{to_text(input.plan)}; }},
    {"alltoallv-matrix", "its bytes between ranks, for nccl-tests", export_matrix},
    {"csv", "a row per message", export_csv},
    {"copies", "boxes of tensors from rank to rank, as reshard check reads them", export_copies},
    {"descriptors", "byte ranges of buffers from rank to rank, as reshard check reads them",
     export_descriptors},
    {"mooncake", "a transfer plan of Mooncake with its placements", export_mooncake},
    {"trace", "the requests as a trace, without the steps", export_trace},
};

}  // namespace

std::span<const ExportRow> exports() { return kRows; }

}  // namespace reshard::sim
