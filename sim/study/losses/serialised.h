// SPDX-License-Identifier: BSD-3-Clause
// Launches that were held back only by the order of a communicator or of a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/executor.h"
#include "core/traffic/workload.h"
#include "sim/network/order.h"

namespace reshard::sim {

// From `from_ps` to `to_ps` the launch of `op` on `rank` waited only for `predecessor` to end;
// everything else that it depends on was done.
struct Serialised {
  OpId op, predecessor;
  Rank rank;
  std::int64_t from_ps, to_ps;
};

// Only pairs in which both operations move bytes; in the order of Order::launches().
std::vector<Serialised> serialised_launches(const Workload& workload, const Order& order,
                                            const Timeline& timeline);

}  // namespace reshard::sim
