// SPDX-License-Identifier: BSD-3-Clause
// Selects the NICs of a node that carry tensors.
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

// The NICs nearest to some GPU, without virtual and wireless ones and without those far slower than
// the fastest. If all are equally near and there are more NICs than GPUs, ports of one card are
// left out too.
UsedNics used_nics(const NodeParts& parts);

}  // namespace reshard::sim
