// SPDX-License-Identifier: BSD-3-Clause
// Output of nccl-tests, text or JSON: rows within their ranges, or refused; and pairs of runs.
#include "sim/calibrate/measured.h"

#include "core/base/limits.h"
#include "sim/calibrate/disturbance.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    if (sim::is_overlap(fuzz::text_of(data, size))) {
      TopologyDescription machine;
      for (const sim::Fitted& figure :
           sim::fit_overlap(machine, sim::parse_overlap(fuzz::text_of(data, size), "o"), "o"))
        if (figure.after < 1 || figure.after > 1'000'000) fuzz::broken("no share: " + figure.name);
      return;
    }
    sim::MeasuredTable table = sim::parse_measured(fuzz::text_of(data, size), "input.txt");
    if (table.passed_over < 0) fuzz::broken("fewer than no rows");
    for (const sim::MeasuredCollective& row : table.rows)
      if (row.ranks < 2 || row.ranks > kMaxRanks || row.bytes < 1 || row.bytes > kMaxBytes ||
          row.time_ps < 1)
        fuzz::broken("a row that nobody measured: " + row.place);
  });
}
