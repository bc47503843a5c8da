// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "core/layout/request.h"

using namespace reshard;

TEST_CASE("a strided shard with a shard inside is FSDP over TP") {
  auto mesh = std::make_shared<const Mesh>(Mesh::row_major({4, 2}));
  Layout layout = parse_layout("15,5", "f32", mesh, "_S(0,2)S(0)");
  std::vector<std::int64_t> offsets, sizes;
  for (int position = 0; position < 8; ++position) {
    offsets.push_back(layout.global_offset(position)[0]);
    sizes.push_back(layout.local_shape(position)[0]);
  }
  CHECK(offsets == std::vector<std::int64_t>{0, 8, 2, 10, 4, 12, 6, 14});
  CHECK(sizes == std::vector<std::int64_t>{2, 2, 2, 2, 2, 2, 2, 1});
}
