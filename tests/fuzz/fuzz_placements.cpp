// SPDX-License-Identifier: BSD-3-Clause
// Placement texts: the first byte chooses the number of axes and dims. An accepted list is printed
// as PyTorch prints it and read back.
#include "core/layout/layout.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  int axes = data[0] % kMaxAxes + 1, dims = data[0] / kMaxAxes % (kMaxDims + 1);
  std::string_view input = fuzz::text_of(data + 1, size - 1);
  return fuzz::refused_or_fine([&] {
    std::vector<std::string> names{"a", "b", "c", "d", "e"};
    names.resize(static_cast<std::size_t>(axes));
    auto mesh = std::make_shared<const Mesh>(Mesh::row_major(
        std::vector<std::int32_t>(static_cast<std::size_t>(axes), 2), Rank{0}, names));
    std::string shape = text(Shape(dims, 6));
    Layout layout = parse_layout(shape, "f32", mesh, input, "--from");
    std::string printed = layout.placements_text();
    if (!(parse_layout(shape, "f32", mesh, printed, "printed") == layout))
      fuzz::broken("'" + printed + "' reads as another layout");
  });
}
