// SPDX-License-Identifier: BSD-3-Clause
// Finds an element of a tensor in the buffers of a rank.
#pragma once

#include <cstdint>
#include <optional>

#include "core/stored/stored.h"

namespace reshard {

struct Location {
  StoredBufferId buffer;
  std::int64_t offset;  // in elements
};

// The first location, if there are several.
std::optional<Location> location_of(const Stored& side, Rank rank, ModelTensorId tensor,
                                    const DimVector& index);

}  // namespace reshard
