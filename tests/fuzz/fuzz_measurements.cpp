// SPDX-License-Identifier: BSD-3-Clause
// Files of measurements: read or refused; an accepted file is complete, and is written and read
// back to the same value.
#include <sstream>

#include "sim/report/measurements.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

namespace {

sim::Measurements parsed(const std::string& text) {
  std::istringstream in(text);
  return sim::parse_measurements(in, "input.jsonl");
}

std::string written(const sim::Measurements& measurements) {
  std::ostringstream out;
  sim::write_measurements(out, measurements);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    sim::Measurements measurements = parsed(std::string(fuzz::text_of(data, size)));
    for (const Timeline& run : measurements.runs)
      if (run.spans.size() != measurements.parts.size())
        fuzz::broken("an iteration without all its parts");
    std::string text = written(measurements);
    if (written(parsed(text)) != text)
      fuzz::broken("written measurements do not read back to the same");
  });
}
