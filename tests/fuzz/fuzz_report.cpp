// SPDX-License-Identifier: BSD-3-Clause
// Two reports in one input, separated by a line "---": compared and written as table and JSON, or
// refused. A report has no difference from itself.
#include "sim/report/comparison.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refused_or_fine([&] {
    constexpr std::string_view kCut = "\n---\n";
    std::string_view text = fuzz::text_of(data, size);
    std::size_t cut = text.find(kCut);
    std::string_view a = text.substr(0, cut);
    if (sim::compare_reports(a, "a", a, "a").differs()) fuzz::broken("it differs from itself");
    if (cut == std::string_view::npos) return;
    sim::Comparison found = sim::compare_reports(a, "a", text.substr(cut + kCut.size()), "b");
    sim::comparison_table(found, 8, 80);
    sim::comparison_json(found);
  });
}
