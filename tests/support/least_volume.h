// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "core/layout/request.h"

namespace reshard::test {

// The least number of bytes that any plan receives over all ranks, capped at the maximum of int64.
std::int64_t least_volume_bytes(const Request& request);

}  // namespace reshard::test
