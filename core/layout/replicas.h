// SPDX-License-Identifier: BSD-3-Clause
// Source shards that are the same: where all ranks' memory is in one place they share one
// allocation.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout/request.h"

namespace reshard {

// Per position of the source mesh, the least position that holds the same elements of the same
// addend.
std::vector<std::int32_t> first_replicas(const Request& request);

}  // namespace reshard
