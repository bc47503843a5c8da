// SPDX-License-Identifier: BSD-3-Clause
// Where a rank has an element of a tensor.
#pragma once

#include <cstdint>
#include <optional>

#include "core/stored/stored.h"

namespace reshard {

struct Location {
  StoredBufferId buffer;
  std::int64_t offset;  // in elements
};

// The first of them.
std::optional<Location> location_of(const Stored& side, Rank rank, ModelTensorId tensor,
                                    const DimVector& index);

}  // namespace reshard
