// SPDX-License-Identifier: BSD-3-Clause
// How tensors lie, in words by which it is looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/call.h"

namespace reshard {

using SpecKey = std::vector<std::uint64_t>;
struct SpecKeyHash {
  std::size_t operator()(const SpecKey& key) const;
};

// Null is none.
void add_tensor(const TensorSpec* tensor, SpecKey& key);
void add_placements(const OpPlacements& placements, SpecKey& key);

}  // namespace reshard
