// SPDX-License-Identifier: BSD-3-Clause
// Files of copies: judged and reported on, or refused.
#include <sstream>

#include "sim/check/check_report.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::istringstream in{std::string(fuzz::text_of(data, size))};
    sim::CheckReport report = sim::report_of(sim::check_copies(in, "input.copies"));
    for (const Finding& finding : report.findings)
      if (finding.faults.empty() || finding.elements < 1) fuzz::broken("a finding of nothing");
    if (sim::check_text(report, 100, 80).empty() || sim::check_json(report).empty())
      fuzz::broken("a report without words");
  });
}
