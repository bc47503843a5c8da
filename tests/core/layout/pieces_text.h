// SPDX-License-Identifier: BSD-3-Clause
// Index sets in the notation of the tables of PyTorch's semantics: "0-1,3"; "" is an empty set.
#pragma once

#include <string>
#include <vector>

#include "core/layout/layout.h"

namespace reshard {

inline std::string runs_text(Runs runs) {
  std::string out;
  for (const Run& run : runs) {
    if (!out.empty()) out += ',';
    out += std::to_string(run.global_lo);
    if (run.size == 1) continue;
    out += '-';
    out += std::to_string(run.global_hi() - 1);
  }
  return out;
}

// Dim 0 of every rank, row-major.
inline std::vector<std::string> pieces_text(std::int64_t length, const std::string& mesh,
                                            const std::string& placements) {
  Layout layout = parse_layout(std::to_string(length), "f32",
                               std::make_shared<const Mesh>(parse_mesh(mesh)), placements);
  std::vector<std::string> out;
  for (std::int32_t position = 0; position < layout.mesh().size(); ++position)
    out.push_back(runs_text(layout.runs(0, position)));
  return out;
}

}  // namespace reshard
