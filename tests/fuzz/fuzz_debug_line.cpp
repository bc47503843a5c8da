// SPDX-License-Identifier: BSD-3-Clause
// Lines of DebugMode: the first byte chooses the number of axes. A line that is accepted is written
// again and read back to the same value.
#include "core/torch/debug_line.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

namespace {

std::string written(const DebugLine& line) {
  std::string argument =
      line.shape ? (line.of_one_rank ? "t: " : "dt: ") + line.dtype + "[" + text(*line.shape) + "]"
                 : "0";
  return "redistribute_input(" + argument + ", trace: " + line.from + "->" + line.to + ")";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view input = fuzz::text_of(data + 1, size - 1);
  std::vector<std::int32_t> sizes(static_cast<std::size_t>(data[0] % kMaxAxes + 1), 3);
  return fuzz::refused_or_fine([&] {
    DebugLine line = parse_debug_line(input, "line");
    DebugLine again = parse_debug_line(written(line), "written");
    if (written(again) != written(line)) fuzz::broken("'" + written(line) + "' reads otherwise");
    if (line.shape) global_shape(line, Mesh::row_major(sizes, Rank{0}), "line");
  });
}
