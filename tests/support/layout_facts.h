// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch says of a layout and the program does not.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/layout/layout.h"

namespace reshard::test {

// PyTorch's global offset: the first global index per dim; the dim's full length if the local piece
// is empty (pytorch PR #150862).
inline DimVector global_offset(const Layout& layout, std::int32_t position) {
  DimVector out;
  for (int dim = 0; dim < layout.dims(); ++dim) {
    Runs runs = layout.runs(dim, position);
    out.push_back(runs.empty() ? layout.shape()[dim] : runs.front().global_lo);
  }
  return out;
}

// Like repr() in PyTorch, with all that a placement has: "Shard(dim=0)", "Partial(sum)".
inline std::string repr(const Placement& placement) {
  constexpr std::array<const char*, 4> kForms{"Replicate()", "Shard(dim={0})",
                                              "_StridedShard(dim={0}, sf={1})", "Partial({2})"};
  return fmt::format(fmt::runtime(kForms[to_index(placement.kind)]), placement.dim,
                     placement.split_factor, text(placement.op));
}

}  // namespace reshard::test
