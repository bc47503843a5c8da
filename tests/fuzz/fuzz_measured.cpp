// SPDX-License-Identifier: BSD-3-Clause
// What nccl-tests prints, text or JSON: rows within their ranges, or refused.
#include "sim/calibrate/measured.h"

#include "core/base/limits.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    sim::MeasuredTable table = sim::parse_measured(fuzz::text_of(data, size), "input.txt");
    if (table.passed_over < 0) fuzz::broken("fewer than no rows");
    for (const sim::MeasuredCollective& row : table.rows)
      if (row.ranks < 2 || row.ranks > kMaxRanks || row.bytes < 1 || row.bytes > kMaxBytes ||
          row.time_ps < 1)
        fuzz::broken("a row that nobody measured: " + row.place);
  });
}
