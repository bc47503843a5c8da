// SPDX-License-Identifier: BSD-3-Clause
// What PyTorch says of a layout and the program does not.
#pragma once

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

}  // namespace reshard::test
