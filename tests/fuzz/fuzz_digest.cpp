// SPDX-License-Identifier: BSD-3-Clause
// Files of digests: refused, or written as a text that is read to the same again; gathered; and
// looked up in layouts.
#include <sstream>

#include "sim/digest/compare.h"
#include "sim/digest/digest_file.h"
#include "sim/digest/digest_report.h"
#include "sim/trace/line_reader.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

namespace {

sim::ModelLayouts layouts() {
  std::istringstream in(
      "{\"reshard_check\": 1}\n"
      "{\"tensor\": \"w\", \"shape\": [4, 3], \"dtype\": \"bf16\"}\n"
      "{\"side\": \"both\", \"buffer\": \"b\", \"mesh\": \"2\", \"fused\": [\"w\", \"w\"]}\n");
  sim::LineReader lines(in, "layouts");
  return sim::read_sides(lines, "layouts");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    sim::DigestFile file = sim::read_digest_file(fuzz::text_of(data, size), "input");
    std::string text = sim::write_digest_file(file);
    if (sim::write_digest_file(sim::read_digest_file(text, "written")) != text)
      fuzz::broken("a text that is read to something else");
    sim::gathered({file});
    sim::ModelLayouts model = layouts();
    sim::Digests digests = sim::digests_in(file, model, "input");
    sim::DigestReport report{
        "a", "b", &model, sim::compare_digests(model, digests, digests, file.sides, nullptr, {})};
    if (!report.comparison.findings.empty()) fuzz::broken("digests that differ from themselves");
    if (sim::digest_text(report, 10, 80).empty() || sim::digest_json(report).empty())
      fuzz::broken("a report without words");
  });
}
