// SPDX-License-Identifier: BSD-3-Clause
// What a transfer could not restore if a rank of the source were lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

struct LostTensor {
  std::string name;  // of the request
  std::int64_t elements;
  Box first;  // the first box of them
};

struct LostRank {
  Rank rank;
  std::vector<LostTensor> tensors;  // not empty
  std::int64_t bytes;
};
// For every single rank of the sources, what some destination needs and no other rank has;
// ascending, without ranks that others can replace. The requests have explicit boxes.
std::vector<LostRank> lost_without_each(std::span<const Request> requests);

}  // namespace reshard::sim
