// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace reshard::sim {

// Bytes that this process may take: the machine's memory, or its control group's limit if that is
// less.
std::int64_t memory_of_machine_bytes();

}  // namespace reshard::sim
