// SPDX-License-Identifier: BSD-3-Clause
// The small cases of the sweep, set by set: all pairs of layouts of these shapes with these
// placements per axis on these meshes.
#pragma once

#include <string_view>
#include <vector>

#include "core/layout/request.h"

namespace reshard::test {

struct CaseSet {
  std::string_view name;
  std::vector<Shape> shapes;
  DType dtype;
  std::vector<Placement> choices;
  std::vector<std::vector<std::int32_t>> meshes;
};

const std::vector<CaseSet>& case_sets();
// The set must exist.
const CaseSet& case_set(std::string_view name);

}  // namespace reshard::test
