// SPDX-License-Identifier: BSD-3-Clause
// What became of a plan's bytes: found by the store, said by every report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/digest.h"
#include "core/layout/box.h"

namespace reshard::sim {

struct DataReport {
  bool checked = false;
  bool full_size = false;             // else the tensor was shrunk to fit the budget
  Shape shape = {};                   // of the tensor that was moved
  std::int64_t elements = 0;          // destination elements compared, all ranks together
  std::optional<Digest> digest = {};  // XXH3-128 over the destination shards, rank ascending; none
                                      // where they hold no element
  std::int64_t bytes_moved = 0;       // written by steps
  std::string note = {};              // why nothing was moved
};

}  // namespace reshard::sim
