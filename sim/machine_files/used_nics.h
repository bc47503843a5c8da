// SPDX-License-Identifier: BSD-3-Clause
// Which of a node's NICs carry tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine_files/node_parts.h"

namespace reshard::sim {

struct UsedNics {
  std::vector<std::int64_t> rates;   // bytes/s
  std::vector<std::string> assumed;  // why others were left out
};

// Those that are nearest to some GPU; of these none that software makes or that joins a radio, none
// that is far slower than the fastest, and, where all are equally near and more than GPUs, not the
// ports of one card.
UsedNics used_nics(const NodeParts& parts);

}  // namespace reshard::sim
