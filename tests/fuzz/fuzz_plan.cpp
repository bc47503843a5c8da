// SPDX-License-Identifier: BSD-3-Clause
// Plan texts. The reader proves what it accepts; it is written, read and written again to the same
// bytes.
#include "core/text/plan_text.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    std::string written = to_text(parse_plan(fuzz::text_of(data, size), "input.plan"));
    if (to_text(parse_plan(written, "written.plan")) != written)
      fuzz::broken("a plan is not read back:\n" + written);
  });
}
