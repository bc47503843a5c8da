// SPDX-License-Identifier: BSD-3-Clause
// Mesh texts and rank lists, separated by a newline. Accepted ones are printed and read back.
#include "core/layout/mesh.h"
#include "tests/fuzz/fuzz_input.h"

using namespace reshard;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fuzz::text_of(data, size);
  std::string_view mesh_text = input.substr(0, input.find('\n'));
  std::string_view ranks =
      mesh_text.size() < input.size() ? input.substr(mesh_text.size() + 1) : std::string_view{};
  return fuzz::refused_or_fine([&] {
    Mesh mesh = parse_mesh(mesh_text, ranks);
    if (!(parse_mesh(shape_text(mesh), ranks_text(mesh.ranks())) == mesh))
      fuzz::broken("a mesh is not read back: " + shape_text(mesh));
  });
}
