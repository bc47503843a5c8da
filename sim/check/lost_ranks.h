// SPDX-License-Identifier: BSD-3-Clause
// Finds what a transfer could not restore if one rank of the source were lost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/layout/request.h"

namespace reshard::sim {

struct LostTensor {
  std::string name;  // the request's name
  std::int64_t elements;
  Box first;  // the first of the lost boxes
};

struct LostRank {
  Rank rank;
  std::vector<LostTensor> tensors;  // not empty
  std::int64_t bytes;
};
// For every rank of the sources, what some destination needs and no other rank holds. Ascending,
// without ranks that others can replace. The requests must have explicit boxes.
std::vector<LostRank> lost_without_each(std::span<const Request> requests);

}  // namespace reshard::sim
