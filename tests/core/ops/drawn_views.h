// SPDX-License-Identifier: BSD-3-Clause
// Random calls of view operators, most of them valid.
#pragma once

#include <string>
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/call.h"
#include "tests/support/prng.h"

namespace reshard::test {

struct DrawnView {
  std::string name;
  OpAttributes attributes;
  Shape shape;
  std::vector<std::int32_t> mesh;
  OpPlacements placements;
};

DrawnView drawn_view(Prng& prng);
// For a failing test.
std::string text(const DrawnView& view);

}  // namespace reshard::test
