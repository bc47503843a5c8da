// SPDX-License-Identifier: BSD-3-Clause
// Launches that were held back by nothing but the order of a communicator or of a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/traffic/workload.h"
#include "sim/network/order.h"

namespace reshard::sim {

// A launch of `op` on `rank` that waited for the end of `behind` alone, after all else it waits for
// was over.
struct Serialised {
  OpId op, behind;
  Rank rank;
  std::int64_t from_ps, to_ps;
};

// Of operations that move bytes, held back by such ones; by launches as the order has them.
std::vector<Serialised> serialised_launches(const Workload& workload, const Order& order,
                                            const Timeline& timeline);

}  // namespace reshard::sim
